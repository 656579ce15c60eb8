#pragma once
// Pages of the library itself: their GLSL lies in shaders/pages, and a device may run an expansion instead.

#include <memory>

#include "compute/tensor/functions.h"
#include "compute/tensor/pages/page.h"

namespace imprint::tensor {

// The limits of a device, for expansions.
struct PageLimits {
  int invocations = 128;           // per workgroup
  int shared_bytes = 16384;        // per workgroup
  std::int64_t groups = 256;       // workgroups that fill the device
  bool first_output_only = false;  // nothing reads the page's other outputs
  bool processor = false;          // a CPU: an invocation is no lane, and its registers are few
  // A mixed program on a device with matrix units: pages may read float16 and use a subgroup's matrices.
  bool matrix_units = false;
  bool integer_dot = false;  // pages may include integer_dot.glsl
};

struct LibraryPage : Page {
  LibraryPage() = default;
  explicit LibraryPage(Page page) : Page(std::move(page)) {}

  std::string prelude, shader;        // pages of shaders/, compiled before and after `glsl`
  std::vector<std::string> includes;  // of shaders/include
  double work = 0;                    // as ProgramStats::work; 0: 4 for each element read and written
  double loads = 1;                   // how often the kernel loads each element of an input
  bool stored_inputs = false;         // loads compute nothing: inputs have memory, except these:
  // Inputs whose loads compute cheap elementwise functions, however many elements they have.
  std::vector<std::size_t> computed;
  // Inputs of one byte per element that have memory: imp_quad_k(i) is their 16 bytes from element 16 i, a
  // uvec4.
  std::vector<std::size_t> quads;
  // Inputs whose rows along the last axis, of multiples of four elements, load four at a time: imp_row_k(r)
  // is the place of row r, and imp_four_k(place + e) its elements from 4 e, a vec4. The rows of one matrix
  // (the last two axes) are evenly spaced.
  std::vector<std::size_t> fours;
  // Outputs of a float type that the kernel stores four elements at a time: imp_keep_four_k(i, four) stores
  // elements from 4 i, and imp_kept_four_k(i) is what this invocation stored there.
  std::vector<std::size_t> kept;
  // The kernel, or that of an expansion, uses the matrices of a subgroup (shaders/include/matrices_*.glsl)
  // where PageLimits::matrix_units is set.
  bool on_matrix_units = false;
  // Inputs that such a kernel reads as float16 (narrow_products.h), by rows along the last axis, of multiples
  // of eight elements: imp_row_k(r) is the place of row r, and imp_eight_k(place + e) its elements from 8 e,
  // packed. The rows of one matrix (the last two axes) are evenly spaced.
  std::vector<std::size_t> eights;
  // Some expansions compute outputs that nothing reads: what only those read is dropped.
  bool spares_outputs = false;
  // Words of memory by which workgroups tell each other what they found: imp_mark(i), a coherent uint. Zeros
  // at first; then runs keep them. The page's loads then compute exact values (exact_values.h).
  std::int64_t marks = 0;
  bool keeps_names = false;  // outputs have the names of axes that their shapes say (Extent)
  // Cheap elementwise functions of the only output join the kernel, which stores each element once.
  bool is_continued = false;
  // The same outputs by other operations, for devices. Then the page has no kernel of its own.
  std::function<std::vector<Tensor>(std::span<const Tensor> inputs, const PageLimits& limits)> expand;

  // The same outputs by other operations, for device cpu; instead of Page::cpu.
  std::function<std::vector<Tensor>(std::span<const Tensor> inputs)> compose;

  // Pages whose derivative computes recorded tensors again: the page for those tensors, rewritten.
  std::function<std::shared_ptr<const LibraryPage>(const TensorFunction& rewrite)> rewritten;

  bool has_kernel() const { return !glsl.empty() || !shader.empty(); }
};

std::vector<Tensor> run_page(LibraryPage page, std::span<const Tensor> inputs);

// Inputs: the outputs, then the inputs of `backward`. Gives the outputs as they are, with that derivative.
LibraryPage gradient_page(std::span<const Tensor> outputs, TensorBackward backward);
// Outputs of f, without derivatives of its own: what gradient_page takes.
std::vector<Tensor> held_outputs(const TensorFunction& f, std::span<const Tensor> inputs);

}  // namespace imprint::tensor
