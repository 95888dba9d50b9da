// Rows in PostgreSQL's binary COPY format (postgresql.org/docs/current/sql-copy.html), as function pack_rows;
// bothost/store/postgres.py is its face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"

namespace bothost::python {
namespace {

enum class Kind { kInt2, kInt4, kInt8, kFloat8, kText, kBytes };

constexpr std::array<std::pair<const char*, Kind>, 6> kKinds{{{"int2", Kind::kInt2},
                                                              {"int4", Kind::kInt4},
                                                              {"int8", Kind::kInt8},
                                                              {"float8", Kind::kFloat8},
                                                              {"text", Kind::kText},
                                                              {"bytea", Kind::kBytes}}};
constexpr std::uint32_t kNull = 0xFFFFFFFF;

Kind kind_named(const std::string& name) {
  for (const auto& [known, kind] : kKinds)
    if (name == known) return kind;
  throw InvalidInput("there are no columns of the type \"" + name + "\"");
}

/// Bytes as they travel: numbers in network order.
class Packer {
 public:
  explicit Packer(std::size_t expected) { reserve(expected); }

  template <class T>
  void number(T value) {
    static_assert(std::is_unsigned_v<T>);
    reserve(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_[size_++] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }

  /// Throws what Python raises for a value that does not belong into such a column.
  void field(Kind kind, PyObject* value) {
    if (value == Py_None) return number(kNull);
    switch (kind) {
      case Kind::kInt2:
        return integer<std::int16_t>(value);
      case Kind::kInt4:
        return integer<std::int32_t>(value);
      case Kind::kInt8:
        return integer<std::int64_t>(value);
      case Kind::kFloat8: {
        const double number_ = PyFloat_AsDouble(value);
        if (number_ == -1.0 && PyErr_Occurred()) throw nb::python_error();
        number<std::uint32_t>(8);
        return number(std::bit_cast<std::uint64_t>(number_));
      }
      case Kind::kText: {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);  // TypeError for what is no str
        if (!text) throw nb::python_error();
        return bytes(text, size);
      }
      case Kind::kBytes: {
        if (PyBytes_Check(value)) return bytes(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
        if (PyUnicode_Check(value)) throw nb::type_error("text does not belong into a column of bytes");
        const nb::object copied = nb::steal(PyBytes_FromObject(value));  // TypeError for what has no bytes
        if (!copied.is_valid()) throw nb::python_error();
        return bytes(PyBytes_AS_STRING(copied.ptr()), PyBytes_GET_SIZE(copied.ptr()));
      }
    }
  }

  [[nodiscard]] nb::bytes take() const { return nb::bytes(out_.data(), size_); }

 private:
  template <class T>
  void integer(PyObject* value) {
    const long long number_ = PyLong_AsLongLong(value);  // TypeError for what is no integer
    if (number_ == -1 && PyErr_Occurred()) throw nb::python_error();
    if (!std::in_range<T>(number_)) {
      PyErr_Format(PyExc_OverflowError, "%lld is out of the range of its column", number_);
      throw nb::python_error();
    }
    number<std::uint32_t>(sizeof(T));
    number(static_cast<std::make_unsigned_t<T>>(number_));
  }

  void bytes(const char* data, Py_ssize_t size) {
    if (!std::in_range<std::int32_t>(size)) throw InvalidInput("a value is longer than 2 GiB");
    number(static_cast<std::uint32_t>(size));
    reserve(static_cast<std::size_t>(size));
    std::memcpy(out_.data() + size_, data, static_cast<std::size_t>(size));
    size_ += static_cast<std::size_t>(size);
  }

  void reserve(std::size_t more) {
    if (more > out_.size() - size_) out_.resize(std::max(2 * out_.size(), size_ + more));
  }

  std::string out_;  // of which the first size_ bytes are written
  std::size_t size_ = 0;
};

nb::bytes pack_rows(nb::handle rows, const std::vector<std::string>& types) {
  constexpr std::size_t kRowBytes = 1024;  // about
  std::vector<Kind> kinds;
  for (const std::string& type : types) kinds.push_back(kind_named(type));
  const nb::object all = nb::steal(PySequence_Tuple(rows.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  const Py_ssize_t count = PyTuple_GET_SIZE(all.ptr());
  Packer packer(static_cast<std::size_t>(count) * kRowBytes);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::object row =
        nb::steal(PySequence_Tuple(PyTuple_GET_ITEM(all.ptr(), i)));  // itself, if it is one
    if (!row.is_valid()) throw nb::python_error();
    if (PyTuple_GET_SIZE(row.ptr()) != static_cast<Py_ssize_t>(kinds.size()))
      throw InvalidInput("a row has " + std::to_string(PyTuple_GET_SIZE(row.ptr())) + " values, not " +
                         std::to_string(kinds.size()));
    packer.number(static_cast<std::uint16_t>(kinds.size()));
    for (std::size_t column = 0; column < kinds.size(); ++column)
      packer.field(kinds[column], PyTuple_GET_ITEM(row.ptr(), static_cast<Py_ssize_t>(column)));
  }
  return packer.take();
}

}  // namespace

void bind_postgres(nb::module_& m) {
  m.def("pack_rows", &pack_rows, nb::arg("rows"), nb::arg("types"),
        "Rows as PostgreSQL's binary COPY takes them, without its header and trailer.");
}

}  // namespace bothost::python
