// Frames of websockets; bothost/host/websocket.py is their face.
#include <nanobind/nanobind.h>

#include <string_view>

#include "bindings/bind.h"
#include "core/types.h"
#include "websocket/frames.h"

namespace nb = nanobind;

namespace bothost::python {
namespace {

std::string_view view_of(const nb::bytes& data) { return {data.c_str(), data.size()}; }

nb::object frame(const nb::bytes& data, std::size_t at, std::size_t most) {
  if (at >= data.size()) throw InvalidInput("no frame begins there");
  const auto found = websocket::frame_at(view_of(data), at, most);
  if (!found) return nb::none();
  return nb::make_tuple(found->start, found->end);
}

nb::tuple texts(const nb::bytes& data, std::size_t most) {
  const std::string_view bytes = view_of(data);
  nb::list out;
  std::size_t at = 0;
  while (at < bytes.size() && static_cast<std::uint8_t>(bytes[at]) == websocket::kText) {
    const auto found = websocket::frame_at(bytes, at, most);
    if (!found || found->end > bytes.size()) break;
    PyObject* text = PyUnicode_DecodeUTF8(bytes.data() + found->start,
                                          static_cast<Py_ssize_t>(found->end - found->start), nullptr);
    if (!text) {
      if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) nb::raise_python_error();
      PyErr_Clear();
      break;
    }
    out.append(nb::steal(text));
    at = found->end;
  }
  return nb::make_tuple(out, at);
}

}  // namespace

void bind_websocket(nb::module_& m) {
  m.def("websocket_frame", &frame, nb::arg("data"), nb::arg("at"), nb::arg("most"),
        "Where the payload of the frame at `at` starts and ends; see websocket/frames.h.");
  m.def("websocket_texts", &texts, nb::arg("data"), nb::arg("most"),
        "The text messages, each in one frame, that the data begins with, and where what follows begins.");
}

}  // namespace bothost::python
