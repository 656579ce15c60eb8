#include "compute/nn/optimisers/step_kernel.h"

#include <algorithm>
#include <memory>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"

namespace imprint::nn {

bool suits_step_kernel(const Parameters& parameters, std::int64_t most) {
  constexpr std::size_t kMostParameters = 32;
  return parameters.size() <= kMostParameters &&
         std::ranges::all_of(parameters, [most](const Parameter& parameter) {
           const std::int64_t count = parameter.variable.shape().element_count();
           return count > 0 && count <= most;
         });
}

namespace {

std::string number_text(double value) { return text("float(", static_cast<float>(value), ")"); }

// A function of GLSL that gives a number per parameter.
std::string table_text(const std::string& name, std::span<const double> values) {
  std::string out = text("float ", name, "(int p) {\n");
  for (std::size_t p = 0; p < values.size(); ++p)
    out += text("  if (p == ", p, ") return ", number_text(values[p]), ";\n");
  return out + "  return 0.0;\n}\n";
}

}  // namespace

tensor::LibraryPage page_of_kernel(const StepKernel& kernel) {
  tensor::LibraryPage page;
  page.name = kernel.name;
  page.prelude = "pages/step";
  page.shader = "pages/" + kernel.name;
  page.group_size = 128;
  page.constants = kernel.constants;
  page.includes = kernel.includes;
  for (const auto& [name, value] : kernel.numbers)
    page.glsl += text("const float ", name, " = ", number_text(value), ";\n");
  for (const auto& [name, values] : kernel.tables) page.glsl += table_text(name, values);
  return page;
}

namespace {

// Field `field` of each parameter, of `fields`, as a function of the parameter and the element.
std::string load_functions(const std::string& name, std::size_t parameters, std::size_t field,
                           std::size_t fields) {
  std::string out = text("float ", name, "(int p, int i) {\n");
  for (std::size_t p = 0; p < parameters; ++p)
    out += text("  if (p == ", p, ") return imp_load_", p * fields + field, "(i);\n");
  return out + "  return 0.0;\n}\n";
}

std::string store_functions(const std::string& name, std::size_t parameters, std::size_t field,
                            std::size_t fields) {
  std::string out = text("void store_", name, "(int p, int i, float x) {\n");
  for (std::size_t p = 0; p < parameters; ++p)
    out += text("  if (p == ", p, ") imp_store_", p * fields + field, "(i, x);\n");
  return out + "}\n";
}

}  // namespace

// Inputs: value, gradient and moments of each parameter, then the rate, the decay and the steps before, as
// far as there are. Outputs: value and moments of each.
std::vector<Tensor> RuleOptimiser::in_one_kernel(const StepKernel& kernel, std::span<Rule> rules,
                                                 const std::shared_ptr<const RuleOptimiser>& self) const {
  const std::size_t count = rules.size(), moments = kernel.moments.size(), fields = 2 + moments,
                    results = 1 + moments, shared = count * fields;
  const bool decays = rules[0].decay.ok(), counts = rules[0].done.ok();
  tensor::LibraryPage page = page_of_kernel(kernel);
  page.groups = static_cast<std::int64_t>(count);
  std::vector<double> sizes;
  std::vector<Tensor> inputs;
  for (const Rule& rule : rules) {
    sizes.push_back(static_cast<double>(rule.value.shape().element_count()));
    inputs.insert(inputs.end(), {rule.value, rule.gradient});
    inputs.insert(inputs.end(), rule.moments.begin(), rule.moments.end());
    page.outputs.push_back({rule.value.shape()});
    for (const Tensor& moment : rule.moments) page.outputs.push_back({moment.shape()});
  }
  std::string& glsl = page.glsl;
  const auto add_number = [&](const char* name, const Tensor& value) {
    glsl += text("float ", name, "() { return imp_load_", inputs.size(), "(0); }\n");
    inputs.push_back(value);
  };
  add_number("rate", rules[0].rate);
  if (decays) add_number("decay", rules[0].decay);
  if (counts) {  // the count with this step would be computed and stored first
    glsl += text("float steps() { return float(max(imp_load_", inputs.size(), "(0) + 1, 1)); }\n");
    inputs.push_back(rules[0].done);
  }
  glsl += load_functions("value", count, 0, fields) + load_functions("gradient", count, 1, fields) +
          store_functions("value", count, 0, results) + table_text("sizes", sizes) +
          "int size_of(int p) { return int(sizes(p)); }\n";
  if (!decays) glsl += "float decay() { return 0.0; }\n";
  for (std::size_t k = 0; k < moments; ++k)
    glsl += load_functions(kernel.moments[k], count, 2 + k, fields) +
            store_functions(kernel.moments[k], count, 1 + k, results);

  page.compose = [self, count, fields, shared, decays, counts](std::span<const Tensor> in) {
    const Tensor rate = in[shared];
    Shared numbers{.rate = reshape(rate, {1})};
    if (counts) numbers.t = OptimiserStep::as_number(reshape(in[shared + (decays ? 2 : 1)], {1}) + 1);
    self->share(numbers);
    std::vector<Rule> again;
    for (std::size_t p = 0; p < count; ++p) {
      const auto own = in.subspan(p * fields, fields);
      again.push_back({.parameter = self->parameters_[p],
                       .value = own[0],
                       .gradient = own[1],
                       .rate = rate,
                       .decay = decays ? in[shared + 1] : Tensor(),
                       .moments = {own.begin() + 2, own.end()},
                       .axes = own_axes(own[0], 0)});
      for (const Tensor& factor : numbers.factors) again.back().factors.push_back(reshape(factor, {}));
    }
    const std::vector<Tensor> values = self->one_by_one(again);
    std::vector<Tensor> outputs;
    for (std::size_t p = 0; p < count; ++p) {
      outputs.push_back(values[p]);
      outputs.insert(outputs.end(), again[p].moments.begin(), again[p].moments.end());
    }
    return outputs;
  };
  const std::vector<Tensor> outputs = tensor::run_page(std::move(page), inputs);
  std::vector<Tensor> values;
  for (std::size_t p = 0; p < count; ++p) {
    values.push_back(outputs[p * results]);
    for (std::size_t k = 0; k < moments; ++k) rules[p].moments[k] = outputs[p * results + 1 + k];
  }
  return values;
}

}  // namespace imprint::nn
