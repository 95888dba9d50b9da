#include "bindings/convert.h"

#include <functional>
#include <numeric>
#include <string>

namespace bothost::python {

namespace {

constexpr int kDeepest = 64;

Json tree(nb::handle object, int depth) {
  if (depth > kDeepest) throw InvalidInput("JSON is nested deeper than 64 levels");
  PyObject* o = object.ptr();
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return o == Py_True;
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (PyUnicode_Check(o)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw nb::python_error();
    return std::string(text, at(size));
  }
  if (PyDict_Check(o)) {
    JsonObject out;
    out.reserve(at(PyDict_Size(o)));
    for (const auto& [key, value] : nb::borrow<nb::dict>(object)) {
      if (!PyUnicode_Check(key.ptr())) throw nb::type_error("JSON: keys of an object must be strings");
      out.emplace_back(tree(key, depth).text("key"), tree(value, depth + 1));
    }
    return out;
  }
  if (PyList_Check(o) || PyTuple_Check(o)) {
    JsonArray out;
    for (nb::handle item : nb::borrow<nb::sequence>(object)) out.push_back(tree(item, depth + 1));
    return out;
  }
  if (PyIndex_Check(o)) {
    const auto whole = nb::steal(PyNumber_Index(o));
    if (!whole.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    if (overflow) throw InvalidInput("JSON: an integer does not fit 64 bits");
    return static_cast<std::int64_t>(v);
  }
  throw nb::type_error("JSON: only dict, list, tuple, str, int, float, bool and None are allowed");
}

nb::object text_to(const std::string& text) {
  PyObject* o = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (!o) throw nb::python_error();
  return nb::steal(o);
}

}  // namespace

std::int64_t integer(nb::handle object) {
  const Py_ssize_t v = PyNumber_AsSsize_t(object.ptr(), nullptr);
  if (v == -1 && PyErr_Occurred()) throw nb::python_error();
  return v;
}

std::uint64_t seed(nb::handle object) {
  const auto whole = nb::steal(PyNumber_Index(object.ptr()));
  if (!whole.is_valid()) throw nb::python_error();
  const auto v = PyLong_AsUnsignedLongLongMask(whole.ptr());
  if (v == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw nb::python_error();
  return v;
}

Json json_from(nb::handle object) { return tree(object, 0); }

nb::object json_to(const Json& json) {
  struct Visitor {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(bool v) const { return nb::bool_(v); }
    nb::object operator()(std::int64_t v) const { return nb::int_(v); }
    nb::object operator()(double v) const { return nb::float_(v); }
    nb::object operator()(const std::string& v) const { return text_to(v); }
    nb::object operator()(const JsonArray& v) const {
      nb::list out;
      for (const Json& item : v) out.append(json_to(item));
      return out;
    }
    nb::object operator()(const JsonObject& v) const {
      nb::dict out;
      for (const auto& [key, value] : v) out[text_to(key)] = json_to(value);
      return out;
    }
  };
  return std::visit(Visitor{}, json.value());
}

std::shared_ptr<AnyGame> game_of(const AnyGame& game) {
  return std::const_pointer_cast<AnyGame>(game.shared_from_this());
}

nb::list pairs_to(const std::vector<std::pair<Seat, Action>>& pairs) {
  nb::list out;
  for (const auto& [seat, action] : pairs) out.append(nb::make_tuple(static_cast<int>(seat), action));
  return out;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string out;
  for (const std::size_t d : shape) out += (out.empty() ? "(" : ", ") + std::to_string(d);
  return out + (shape.size() == 1 ? ",)" : ")");
}

FloatOut::FloatOut(const AnyGame& game, std::string_view name, Block::Of of, nb::handle out,
                   std::span<const std::size_t> leading)
    : block(game.block_index(name, of)) {
  std::vector<std::size_t> shape(leading.begin(), leading.end());
  for (const int d : game.blocks()[at(block)].shape) shape.push_back(at(d));
  if (out.is_none()) {
    data = new float[std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>())]();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    array = nb::ndarray<nb::numpy, float>(data, shape.size(), shape.data(), owner).cast();
    return;
  }
  Array<float> given;
  if (!nb::try_cast(out, given, false))
    throw nb::type_error("out must be a writable, C-contiguous float32 array on the CPU");
  if (!has_shape(given, shape))
    throw InvalidInput("out: block \"" + std::string(name) + "\" needs shape " + shape_text(shape));
  if (reinterpret_cast<std::uintptr_t>(given.data()) % alignof(float) != 0)
    throw InvalidInput("out: the array's memory is not aligned");
  array = nb::borrow(out);
  data = given.data();
}

}  // namespace bothost::python
