#pragma once
#include <nanobind/nanobind.h>

namespace bothost::python {

void bind_game(nanobind::module_& m);
void bind_vec_env(nanobind::module_& m);
void bind_search(nanobind::module_& m);

}  // namespace bothost::python
