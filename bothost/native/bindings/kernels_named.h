// Instruction sets of the networks by name.
#pragma once
#include <string>

#include "learn/networks/kernels.h"

namespace bothost::python {

/// "": the fastest here. Throws InvalidInput where the processor lacks what is asked for.
const network::Kernels& kernels_named(const std::string& name, bool bf16);

}  // namespace bothost::python
