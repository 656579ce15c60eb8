// Layers whose kernels are pages: recurrent layers of both cells, for several networks, with restarts and in
// both directions; attention with and without a mask, shared heads, extents that fill no tile, and many or
// few heads that its gradients take several tiles per workgroup or two kernels.

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/modules/attention_page.h"
#include "compute/nn/modules/recurrent_page.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

struct CellExtents {
  std::int64_t brains, lines, steps, hidden;
};

void add_cells(std::vector<OpCase>& cases, const std::string& name, nn::Cell cell, const CellExtents& extents,
               bool restarts = false, bool reverse = false) {
  const auto& [brains, lines, steps, hidden] = extents;
  const std::int64_t gates = (cell == nn::Cell::lstm ? 4 : 3) * hidden,
                     state = cell == nn::Cell::lstm ? 2 * hidden : hidden;
  const double wide = 2 / static_cast<double>(hidden);
  std::vector<CaseInput> inputs{
      {{brains, lines, steps, gates}},
      {{brains, hidden, gates}, DType::float32, -wide, wide},
      {{brains, gates}},
      {restarts ? Shape{brains, lines, steps, state} : Shape{brains, lines, state}}};
  if (restarts) inputs.push_back({{brains, lines, steps}, DType::int32, 0, 3});
  const Build build = [=](Inputs in) {
    return nn::run_cells({.cell = cell,
                          .projected = in[0],
                          .weight = in[1],
                          .bias = in[2],
                          .states = in[3],
                          .restarts = restarts ? cast(equal(in[4], 0), DType::float32) : Tensor(),
                          .reverse = reverse});
  };
  cases.push_back({name, std::move(inputs), build, {5e-5, 5e-5}, {5e-4, 5e-4}, true});
}

void add_recurrent_cases(std::vector<OpCase>& cases) {
  for (const nn::Cell cell : {nn::Cell::gru, nn::Cell::lstm}) {
    const std::string name = cell == nn::Cell::gru ? "gru/" : "lstm/";
    add_cells(cases, name + "small", cell, {1, 2, 4, 3});
    add_cells(cases, name + "reverse", cell, {1, 3, 5, 4}, false, true);
    add_cells(cases, name + "kennel_restarts", cell, {3, 2, 6, 2}, true);
    add_cells(cases, name + "restarts_reverse", cell, {1, 3, 5, 3}, true, true);
    add_cells(cases, name + "one_step", cell, {1, 4, 1, 3});
    add_cells(cases, name + "wide", cell, {1, 2, 3, 37});
  }
  // A gradient of a gradient: of the squared gradient by the weights.
  cases.push_back({"gru/second_derivative",
                   {{{1, 2, 3, 6}}, {{1, 2, 6}}, {{1, 6}}, {{1, 2, 2}}},
                   [](Inputs in) {
                     const Tensor loss = sum(square(nn::run_cells(
                         {.projected = in[0], .weight = in[1], .bias = in[2], .states = in[3]})));
                     const auto found = gradients(loss, in.subspan(1, 1));
                     return found ? (*found)[0] : Tensor(found.error());
                   },
                   {5e-4, 5e-4},
                   {2e-3, 2e-3},
                   true});
}

void add_attention(std::vector<OpCase>& cases, const std::string& name, const Shape& query, const Shape& key,
                   bool causal, bool differentiable) {
  cases.push_back({"attention/" + name,
                   {{query}, {key}, {key}},
                   [=](Inputs in) { return nn::attention_page(in[0], in[1], in[2], {.causal = causal}); },
                   {2e-5, 2e-5},
                   {5e-4, 5e-4},
                   differentiable});
}

// Query, key and value are parts of one value, by steps, and so is the result: as a transformer has them.
void add_self_attention(std::vector<OpCase>& cases, const std::string& name, const Shape& steps,
                        std::int64_t heads) {
  const std::int64_t width = steps[2] / 3;
  const Build build = [=](Inputs in) {
    const auto part = [&](std::int64_t k) {
      return permute(reshape(narrow(in[0], 2, k * width, width), {steps[0], steps[1], heads, width / heads}),
                     {0, 2, 1, 3});
    };
    return reshape(permute(nn::attention_page(part(0), part(1), part(2), {.causal = true}), {0, 2, 1, 3}),
                   {steps[0], steps[1], width});
  };
  cases.push_back({"attention/" + name, {{steps}}, build, {2e-5, 2e-5}, {5e-4, 5e-4}, true});
}

// Which masks a case has, and whether its page has the weights as an output.
struct MaskedAttention {
  Shape query, key;
  Shape bias = {}, hidden = {}, factors = {};  // rank 0: none
  bool causal = false, stores = false;
};

// The first query sees no key where queries have masks of their own.
void add_masked_attention(std::vector<OpCase>& cases, const std::string& name, const MaskedAttention& one) {
  std::vector<CaseInput> inputs{{one.query}, {one.key}, {one.key}};
  if (one.bias.rank() > 0) inputs.push_back({one.bias});
  if (one.hidden.rank() > 0) inputs.push_back({one.hidden, DType::int32, 0, 3});
  if (one.factors.rank() > 0) inputs.push_back({one.factors, DType::int32, 0, 3});
  const Build build = [=](Inputs in) {
    nn::AttentionTerms terms{.causal = one.causal};
    std::size_t next = 3;
    if (one.bias.rank() > 0) terms.bias = in[next++];
    if (one.hidden.rank() > 0) {
      const Tensor& numbers = in[next++];
      terms.hidden = equal(numbers, 0);
      const int of_queries = numbers.rank() - 2;
      if (numbers.extent(of_queries) > 1)
        terms.hidden = logical_or(terms.hidden, equal(iota(numbers.shape(), of_queries), 0));
    }
    if (one.factors.rank() > 0) terms.factors = where(equal(in[next], 0), Tensor(0.0f), Tensor(1.5f));
    return nn::attention_page(in[0], in[1], in[2], terms, one.stores);
  };
  cases.push_back({"attention/" + name, std::move(inputs), build, {2e-5, 2e-5}, {5e-4, 5e-4}, true});
}

void add_masked_attentions(std::vector<OpCase>& cases) {
  add_masked_attention(cases, "bias", {.query = {2, 4, 5, 4}, .key = {2, 2, 7, 4}, .bias = {4, 5, 7}});
  add_masked_attention(cases, "padding_causal",
                       {.query = {2, 2, 6, 4}, .key = {2, 2, 9, 4}, .hidden = {2, 1, 1, 9}, .causal = true});
  add_masked_attention(cases, "masked_blocks",
                       {.query = {2, 2, 66, 100},
                        .key = {2, 1, 99, 100},
                        .bias = {2, 66, 99},
                        .hidden = {66, 99},
                        .factors = {2, 2, 66, 99},
                        .causal = true,
                        .stores = true});
  add_masked_attention(
      cases, "hidden",
      {.query = {2, 1, 66, 33}, .key = {2, 1, 70, 33}, .bias = {70}, .hidden = {2, 1, 66, 70}});
}

}  // namespace

void add_layer_cases(std::vector<OpCase>& cases) {
  add_recurrent_cases(cases);
  add_attention(cases, "all", {1, 2, 5, 3}, {1, 2, 7, 3}, false, true);
  add_attention(cases, "causal", {2, 1, 6, 4}, {2, 1, 6, 4}, true, true);
  add_attention(cases, "shared_heads", {1, 4, 4, 5}, {1, 2, 6, 5}, true, true);
  add_attention(cases, "blocks", {1, 2, 70, 99}, {1, 1, 131, 99}, true, true);
  add_attention(cases, "fours", {1, 2, 70, 32}, {1, 1, 131, 32}, true, true);
  add_attention(cases, "wide", {1, 1, 66, 100}, {1, 1, 70, 100}, false, true);
  add_attention(cases, "many_heads", {64, 2, 9, 4}, {64, 2, 140, 4}, true, true);
  add_attention(cases, "few_heads", {1, 1, 40, 4}, {1, 1, 600, 4}, true, true);
  add_self_attention(cases, "by_steps", {2, 70, 48}, 2);
  add_self_attention(cases, "by_steps_one_by_one", {2, 9, 30}, 2);
  add_masked_attention(cases, "narrow_stored",
                       {.query = {1, 2, 70, 24}, .key = {1, 1, 131, 24}, .causal = true, .stores = true});
  add_masked_attentions(cases);
}

}  // namespace imprint::reference
