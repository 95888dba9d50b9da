// SQLite through its C interface: queries as Arrow columns, as class SqliteReader (bothost/export/columns.py
// is its face), and rows into tables, as class SqliteWriter (bothost/store/sqlite_sink.py).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "sqlite/columns.h"
#include "sqlite/writer.h"

namespace bothost::python {
namespace {

using sqlite::Buffer;
using sqlite::Column;
using sqlite::Kind;
using sqlite::Library;

constexpr std::array<std::pair<const char*, Kind>, 10> kKinds{{{"int8", Kind::kInt8},
                                                               {"int16", Kind::kInt16},
                                                               {"int32", Kind::kInt32},
                                                               {"int64", Kind::kInt64},
                                                               {"float64", Kind::kFloat64},
                                                               {"text", Kind::kText},
                                                               {"bytes", Kind::kBytes},
                                                               {"key", Kind::kKey},
                                                               {"words", Kind::kWords},
                                                               {"symbol", Kind::kSymbol}}};

Kind kind_named(const std::string& name) {
  for (const auto& [known, kind] : kKinds)
    if (name == known) return kind;
  throw InvalidInput("there are no columns of the kind \"" + name + "\"");
}

template <class Function>
void take(const nb::dict& addresses, const char* name, Function*& function) {
  if (!addresses.contains(name)) throw InvalidInput(std::string("the address of ") + name + " is missing");
  function = reinterpret_cast<Function*>(nb::cast<std::uintptr_t>(addresses[name]));
}

Library library_at(const nb::dict& addresses) {
  Library made{};
  take(addresses, "open_v2", made.open_v2);
  take(addresses, "close_v2", made.close_v2);
  take(addresses, "errmsg", made.errmsg);
  take(addresses, "extended_errcode", made.extended_errcode);
  take(addresses, "total_changes", made.total_changes);
  take(addresses, "busy_timeout", made.busy_timeout);
  take(addresses, "prepare_v2", made.prepare_v2);
  take(addresses, "finalize", made.finalize);
  take(addresses, "bind_blob", made.bind_blob);
  take(addresses, "bind_text", made.bind_text);
  take(addresses, "bind_int64", made.bind_int64);
  take(addresses, "bind_double", made.bind_double);
  take(addresses, "bind_null", made.bind_null);
  take(addresses, "bind_parameter_count", made.bind_parameter_count);
  take(addresses, "step", made.step);
  take(addresses, "reset", made.reset);
  take(addresses, "column_count", made.column_count);
  take(addresses, "column_name", made.column_name);
  take(addresses, "column_value", made.column_value);
  take(addresses, "value_type", made.value_type);
  take(addresses, "value_int64", made.value_int64);
  take(addresses, "value_double", made.value_double);
  take(addresses, "value_blob", made.value_blob);
  take(addresses, "value_bytes", made.value_bytes);
  return made;
}

/// A new array of shape (n,) that owns the values.
template <class T>
nb::object array_of(Buffer<T>&& values) {
  auto* kept = new Buffer<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner).cast();
}

/// (nulls, validity, offsets, data, offsets of symbols, symbols); None for what the kind does not have.
nb::tuple buffers_of(Column& column) {
  const Kind kind = column.kind();
  const bool varies = kind == Kind::kText || kind == Kind::kBytes || kind == Kind::kWords;
  const bool symbols = kind == Kind::kSymbol;
  return nb::make_tuple(column.nulls, column.nulls ? array_of(std::move(column.validity)) : nb::none(),
                        varies ? array_of(std::move(column.values.offsets)) : nb::none(),
                        array_of(std::move(column.values.data)),
                        symbols ? array_of(std::move(column.symbols.offsets)) : nb::none(),
                        symbols ? array_of(std::move(column.symbols.data)) : nb::none());
}

class Reader {
 public:
  Reader(const nb::dict& addresses, const std::string& file, int busy_ms)
      : reader_(library_at(addresses), file, busy_ms) {}

  nb::list read(const std::string& query, const std::vector<nb::bytes>& blobs,
                const std::vector<std::string>& kinds) {
    const auto hold = busy_.hold();
    std::vector<Kind> wanted;
    for (const std::string& name : kinds) wanted.push_back(kind_named(name));
    std::vector<std::string_view> parameters;
    for (const nb::bytes& blob : blobs) parameters.emplace_back(blob.c_str(), blob.size());
    std::vector<Column> columns;
    {
      const nb::gil_scoped_release released;
      columns = reader_.read(query, parameters, wanted);
    }
    nb::list out;
    for (Column& column : columns) out.append(buffers_of(column));
    return out;
  }

 private:
  sqlite::Reader reader_;
  Exclusive busy_{"reader"};
};

/// A Python value as a parameter; its text or bytes are those of the object, which must live as long as it.
sqlite::Value parameter(PyObject* object) {
  sqlite::Value out;
  Py_ssize_t size = 0;
  if (object == Py_None) return out;
  if (PyUnicode_Check(object)) {
    out.type = sqlite::kText;
    out.bytes = PyUnicode_AsUTF8AndSize(object, &size);
    if (!out.bytes) throw nb::python_error();
  } else if (PyLong_Check(object)) {
    out.type = sqlite::kInteger;
    out.integer = PyLong_AsLongLong(object);
    if (out.integer == -1 && PyErr_Occurred()) throw nb::python_error();
  } else if (PyBytes_Check(object)) {
    out.type = sqlite::kBlob;
    out.bytes = PyBytes_AsString(object);
    size = PyBytes_Size(object);
  } else if (PyFloat_Check(object)) {
    out.type = sqlite::kFloat;
    out.number = PyFloat_AsDouble(object);
  } else {
    const nb::object name = nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__");
    throw nb::type_error(("a database takes no " + nb::cast<std::string>(name)).c_str());
  }
  if (size > std::numeric_limits<int>::max()) throw InvalidInput("a value is longer than 2 GiB");
  out.size = static_cast<int>(size);
  return out;
}

/// (statement, rows); rows are sequences of equal length.
sqlite::Insert insert_of(nb::handle pair) {
  sqlite::Insert out;
  out.statement = nb::cast<std::string>(pair[0]);
  const nb::object given = pair[1];
  const nb::list rows(nb::handle{given});  // another list, where it is none
  for (const nb::handle item : rows) {
    const auto row = nb::isinstance<nb::tuple>(item) ? nb::borrow<nb::tuple>(item) : nb::tuple(item);
    if (out.values.empty()) {
      out.width = row.size();
      out.values.reserve(rows.size() * out.width);
    }
    if (!row.size() || row.size() != out.width) throw InvalidInput("rows of one table differ in length");
    for (const nb::handle value : row) out.values.push_back(parameter(value.ptr()));
  }
  return out;
}

class Writer {
 public:
  Writer(const nb::dict& addresses, const std::string& file) : writer_(library_at(addresses), file) {}

  nb::tuple execute(const std::string& statement) {
    return told([&] { return writer_.execute(statement); });
  }

  nb::tuple insert(const nb::list& pairs, bool background) {
    std::vector<sqlite::Insert> inserts;
    for (const nb::handle pair : pairs) inserts.push_back(insert_of(pair));
    return told([&] { return writer_.insert(inserts, background); });
  }

 private:
  template <class Work>
  nb::tuple told(const Work& work) {
    const auto hold = busy_.hold();
    sqlite::Written written;
    {
      const nb::gil_scoped_release released;
      written = work();
    }
    return nb::make_tuple(written.error, nb::str(written.why.data(), written.why.size()), written.rows);
  }

  sqlite::Writer writer_;
  Exclusive busy_{"writer"};
};

}  // namespace

void bind_sqlite(nb::module_& m) {
  nb::class_<Reader>(m, "SqliteReader", nb::is_final())
      .def(nb::init<const nb::dict&, const std::string&, int>(), nb::arg("addresses"), nb::arg("file"),
           nb::arg("busy_ms"))
      .def("read", &Reader::read, nb::arg("query"), nb::arg("blobs"), nb::arg("kinds"));
  nb::class_<Writer>(m, "SqliteWriter", nb::is_final())
      .def(nb::init<const nb::dict&, const std::string&>(), nb::arg("addresses"), nb::arg("file"))
      .def("execute", &Writer::execute, nb::arg("statement"))
      .def("insert", &Writer::insert, nb::arg("inserts"), nb::arg("background"));
}

}  // namespace bothost::python
