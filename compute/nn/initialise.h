#pragma once
// Initial weights. Drawn on the CPU with Philox, keyed by the seed and the parameter's name: a network has
// the same weights on every machine, whatever the order in which its layers are made.

#include <cstdint>
#include <string_view>
#include <vector>

#include "compute/tensor/shape.h"

namespace imprint::nn {

enum class Scheme {
  zeros,
  ones,
  uniform_fan_in,   // U(+-gain / sqrt(fan in)): PyTorch's default for linear weights and biases
  kaiming_uniform,  // U(+-gain sqrt(3 / fan in)): He et al., Delving Deep into Rectifiers, 2015
  kaiming_normal,   // N(0, gain^2 / fan in)
  xavier_uniform,   // U(+-gain sqrt(6 / (fan in + fan out))): Glorot, Bengio, Understanding the Difficulty of
                    // Training Deep Networks, 2010
  xavier_normal,    // N(0, 2 gain^2 / (fan in + fan out))
  // gain times a matrix with orthonormal rows or columns: Saxe, McClelland, Ganguli, Exact Solutions to the
  // Nonlinear Dynamics of Learning, 2014
  orthogonal,
  constant,          // gain
  uniform,           // U(mean +- gain)
  normal,            // N(mean, gain^2)
  truncated_normal,  // the same, between low and high
  // N(0, gain^2), but a share `sparsity` of each input's weights is 0: Martens, Deep Learning via
  // Hessian-free Optimization, 2010
  sparse,
  identity  // gain on the diagonal; of a convolution: at the kernel's centre. PyTorch's eye_ and dirac_
};

struct Initialisation {
  Scheme scheme = Scheme::uniform_fan_in;
  double gain = 1;
  double mean = 0;
  double low = -2, high = 2;  // of truncated_normal
  double sparsity = 0.5;
};

struct InitialValues {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t fan_in = 1;  // of the layer: a bias has its layer's fan in and fan out
  std::int64_t fan_out = 1;
  std::int64_t kernel = 1;  // elements of a convolution's kernel: columns are [in, kernel]
  std::int64_t centre = 0;  // the kernel's middle element; for identity
  std::int64_t groups = 0;  // parameters in a row; 0: one
  std::uint64_t seed = 0;
  std::uint32_t first_group = 0;  // group g of several equals a single parameter with first_group = g
};
// For the weight [out, in / groups, kernel...] of a convolution: rows, columns, fans and centre. The fans are
// those of PyTorch: in / groups times the kernel's elements, and out times the kernel's elements.
InitialValues convolution_values(const Shape& weight);

// Values of a parameter of shape [rows, columns], or [groups, rows, columns]; row-major. `name` is the
// variable's: it keys the random numbers.
std::vector<float> initial_values(const Initialisation& initialisation, std::string_view name,
                                  const InitialValues& wanted);

}  // namespace imprint::nn
