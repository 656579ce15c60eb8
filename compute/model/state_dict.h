#pragma once
// Parameters as state dictionaries: the names and layouts of PyTorch's files. Imprint stores some weights
// transposed (Parameter::transposed); these functions turn them on the way.

#include <string>
#include <string_view>
#include <vector>

#include "compute/model/files/safetensors.h"
#include "compute/nn/parameter.h"
#include "compute/program/run.h"

namespace imprint {
struct ImportedModel;
}

namespace imprint::nn {

// The parameters of a model that was imported with ImportOptions::parameters_as_variables, under the file's
// names: to fine-tune it, all or some, or to adapt it (Lora).
Parameters parameters_of(const ImportedModel& model);

// The content of the variables under "<prefix><name>", in their types: float16 and bfloat16 take two bytes
// each. But int32 variables become int64, as PyTorch's counters.
Result<safetensors::File> save_state(Session& session, const Parameters& parameters,
                                     std::string_view prefix = {});

// Writes "<prefix><name>" into each variable, converted to its type. Arrays of other names are ignored.
// Bounds for p parameters and a file of n bytes with t arrays: time O(n + p log t); memory, beside the file,
// of one array at a time in the variable's type and twice in float32. Errors: not_found (a name that the file
// lacks), shape_mismatch; nothing is written then.
Result<> load_state(Session& session, const Parameters& parameters, const safetensors::File& file,
                    std::string_view prefix = {});

// A tensor's name in the file -> the parameter's. '*' stands for any characters; those of the first '*'
// replace the first '*' of `to`, and so on: {"model.*.gamma", "*.weight"}. The first rule that fits a name is
// used.
struct Rename {
  std::string from, to;
};

struct LoadOptions {
  std::vector<Rename> renames = {};
  bool partial = false;  // load what fits, and report the rest
};

// Names of parameters, except `unused`: tensors of the file, under their new names.
struct LoadReport {
  std::vector<std::string> loaded, missing, unused;
  std::vector<std::string> misfits;  // "fc1.weight: found [3, 2], expected [4, 2]"

  bool complete() const { return missing.empty() && misfits.empty(); }
  std::string text() const;  // a line per kind, with up to 16 names each
};

// As load_state, for the files of others. Bounds, besides: a name is compared with each rule, in time of
// their lengths' product at most; the file's names take memory twice, in a table and in the report. Errors:
// not_found (parameters are missing or do not fit, and not partial; nothing is written then),
// invalid_argument (two tensors get one name).
Result<LoadReport> load_tensors(Session& session, const Parameters& parameters, const safetensors::File& file,
                                const LoadOptions& options = {});

}  // namespace imprint::nn
