#pragma once
#include <nanobind/nanobind.h>

namespace bothost::python {

void bind_game(nanobind::module_& m);
void bind_vec_env(nanobind::module_& m);
void bind_mahjong(nanobind::module_& m);
void bind_search(nanobind::module_& m);
/// Moves and hand analysis of Dou Dizhu, as functions named doudizhu_*; bothost/rules/doudizhu.py is their
/// face.
void bind_doudizhu(nanobind::module_& m);
/// The rule player of Othello, as othello_choose; bothost/rules/othello.py is its face.
void bind_othello(nanobind::module_& m);
/// The rule player of the pairing game; bothost/rules/pairing.py is its face.
void bind_pairing(nanobind::module_& m);
/// The networks of trainers: Mlp, whose face is bothost/training/fused.py, and ActionValues, whose face is
/// bothost/training/action_values.py.
void bind_networks(nanobind::module_& m);
/// Factorization machines; bothost/training/factorization.py is their face.
void bind_fm(nanobind::module_& m);
void bind_process(nanobind::module_& m);

}  // namespace bothost::python
