#pragma once
// Updates of variables in the oracle: what a run of a program does to its variables.

#include <span>

#include "compute/program/program.h"
#include "tests/reference/interpreter.h"

namespace imprint::reference {

// Computes all values from the state before the run, then changes the variables. `state` holds inputs and
// variables by name; missing variables start from their initial content. Throws as evaluate does.
void run_updates(std::span<const Update> updates, Bindings& state);

// The content of a variable after runs.
std::vector<double> content(const Variable& variable, const Bindings& state);

}  // namespace imprint::reference
