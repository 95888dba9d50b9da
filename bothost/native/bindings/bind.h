#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "learn/networks/kernels.h"

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
/// The policy network of trainers, as class Mlp; bothost/training/fused.py is its face.
void bind_network(nanobind::module_& m);
/// Networks of values Q(s, a), as class ActionValues; bothost/training/action_values.py is their face.
void bind_action_values(nanobind::module_& m);
/// The kernels of this name; "": the fastest here. Throws InvalidInput where the processor lacks what is
/// asked for.
const network::Kernels& kernels_named(const std::string& name, bool bf16);
/// Factorization machines; bothost/training/factorization.py is their face.
void bind_fm(nanobind::module_& m);

}  // namespace bothost::python
