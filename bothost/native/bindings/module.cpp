// Module bothost.native._native. Only this folder knows Python. _native.pyi describes the module.
#include <nanobind/stl/shared_ptr.h>

#include <cstring>
#include <typeinfo>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/registry.h"
#include "othello/board.h"
#include "search/any_search.h"

namespace bothost::python {
namespace {

/// Messages may quote hostile bytes: what is not UTF-8 in them is replaced, never raised about.
void set_error(PyObject* type, const char* what) {
  PyObject* text = PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "replace");
  if (!text) return;
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

}  // namespace

NB_MODULE(_native, m) {
  // A game that is kept to the end of the process (by a cache, a thread) is no leak that matters.
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const InvalidInput& e) {
      set_error(PyExc_ValueError, e.what());
    } catch (const std::bad_cast&) {  // nb::cast met an object of another kind
      set_error(PyExc_TypeError, "an argument has the wrong type");
    }
  });
  bind_game(m);
  bind_vec_env(m);
  bind_search(m);
  bind_doudizhu(m);
  bind_mahjong(m);
  bind_othello(m);
  bind_pairing(m);
  bind_networks(m);
  bind_fm(m);
  bind_process(m);

  m.def(
      "games",
      [](bool testing) {
        nb::list names;
        for (const GameEntry& entry : registered_games())
          if (testing || !entry.testing) names.append(entry.name);
        return names;
      },
      nb::arg("testing") = false);
  m.def("register_game", [](const nb::capsule& entry) {
    // The name is the capsule's type: nothing else may be read as an entry.
    const void* data = PyCapsule_GetPointer(entry.ptr(), "bothost.GameEntry");
    if (!data) throw nb::python_error();
    register_game(*static_cast<const GameEntry*>(data));
  });
  m.def("presets", [](std::string_view name) {
    const auto presets = find_game(name).presets;
    return std::vector<std::string_view>(presets.begin(), presets.end());
  });
  m.def("make_game",
        [](std::string_view name, nb::dict options) { return find_game(name).make(json_from(options)); });
  m.def("othello_perft", [](nb::handle depth) {
    const int plies = within(depth, "depth", 0, 14);
    return without_gil([&] { return othello::perft(othello::kStart, plies); });
  });
}

}  // namespace bothost::python
