#include "rope.h"

#include <array>
#include <cmath>
#include <span>
#include <string>

using namespace imprint;

namespace rope {
namespace {

constexpr float kStiffness = 2000, kKept = 0.995f, kStep = 0.01f, kGravity = -9.81f;

// ---- on the device ----

constexpr char kSprings[] = R"(
const float kRest = 0.15, kStiffness = 2000.0, kKept = 0.995, kStep = 0.01, kGravity = -9.81;

// The force of a spring on one end, with the other end at distance d.
vec2 pull(vec2 d) { return kStiffness * (1.0 - kRest / length(d)) * d; }

// The derivative of pull, a symmetric matrix, times w.
vec2 pull_derivative(vec2 d, vec2 w) {
  float size = length(d), ratio = kRest / size;
  return kStiffness * ((1.0 - ratio) * w + ratio * dot(d, w) / (size * size) * d);
}

shared vec2 around[MASSES];  // of all masses, so that each invocation sees its neighbours
)";

constexpr char kForward[] = R"(
void imp_page(int group) {
  int i = int(gl_LocalInvocationID.x);
  vec2 x = vec2(imp_load_0(2 * i), imp_load_0(2 * i + 1)),
       v = vec2(imp_load_1(2 * i), imp_load_1(2 * i + 1));
  around[i] = x;
  barrier();
  vec2 force = vec2(0.0, kGravity);
  if (i > 0) force += pull(around[i - 1] - x);
  if (i + 1 < MASSES) force += pull(around[i + 1] - x);
  if (i + 1 == MASSES) force += vec2(imp_load_2(0), imp_load_2(1));
  v = i == 0 ? vec2(0.0) : kKept * v + kStep * force;  // the first mass is fixed
  x += kStep * v;
  imp_store_0(2 * i, x.x);
  imp_store_0(2 * i + 1, x.y);
  imp_store_1(2 * i, v.x);
  imp_store_1(2 * i + 1, v.y);
}
)";

// Inputs: positions before the step, gradients of both outputs. Outputs: gradients of all inputs.
constexpr char kBackward[] = R"(
shared vec2 moved[MASSES];  // gradients of the velocities after the step

void imp_page(int group) {
  int i = int(gl_LocalInvocationID.x);
  vec2 x = vec2(imp_load_0(2 * i), imp_load_0(2 * i + 1)),
       of_x = vec2(imp_load_1(2 * i), imp_load_1(2 * i + 1)),
       of_v = vec2(imp_load_2(2 * i), imp_load_2(2 * i + 1));
  vec2 own = i == 0 ? vec2(0.0) : of_v + kStep * of_x;
  around[i] = x;
  moved[i] = own;
  barrier();
  if (i > 0) of_x += kStep * pull_derivative(x - around[i - 1], moved[i - 1] - own);
  if (i + 1 < MASSES) of_x -= kStep * pull_derivative(around[i + 1] - x, own - moved[i + 1]);
  imp_store_0(2 * i, of_x.x);
  imp_store_0(2 * i + 1, of_x.y);
  imp_store_1(2 * i, kKept * own.x);
  imp_store_1(2 * i + 1, kKept * own.y);
  if (i + 1 == MASSES) {
    imp_store_2(0, kStep * own.x);
    imp_store_2(1, kStep * own.y);
  }
}
)";

// ---- the same on device cpu ----

using Vec = std::array<float, 2>;
using Arrays = std::span<const PageArray>;

Vec get(const PageArray& array, std::size_t i) { return {array.floats()[2 * i], array.floats()[2 * i + 1]}; }
void put(const PageArray& array, std::size_t i, Vec value) {
  array.floats()[2 * i] = value[0];
  array.floats()[2 * i + 1] = value[1];
}
Vec operator+(Vec a, Vec b) { return {a[0] + b[0], a[1] + b[1]}; }
Vec operator-(Vec a, Vec b) { return {a[0] - b[0], a[1] - b[1]}; }
Vec operator*(float s, Vec a) { return {s * a[0], s * a[1]}; }
float dot(Vec a, Vec b) { return a[0] * b[0] + a[1] * b[1]; }

Vec pull(Vec d) { return kStiffness * (1 - kRest / std::sqrt(dot(d, d))) * d; }
Vec pull_derivative(Vec d, Vec w) {
  const float size = std::sqrt(dot(d, d)), ratio = kRest / size;
  return kStiffness * ((1 - ratio) * w + ratio * dot(d, w) / (size * size) * d);
}

void forward_on_cpu(Arrays in, Arrays out) {
  for (std::size_t i = 0; i < kMasses; ++i) {
    const Vec x = get(in[0], i);
    Vec force{0, kGravity};
    if (i > 0) force = force + pull(get(in[0], i - 1) - x);
    force = force + (i + 1 < kMasses ? pull(get(in[0], i + 1) - x) : get(in[2], 0));
    const Vec v = i == 0 ? Vec{} : kKept * get(in[1], i) + kStep * force;
    put(out[0], i, x + kStep * v);
    put(out[1], i, v);
  }
}

void backward_on_cpu(Arrays in, Arrays out) {
  const auto moved = [&](std::size_t i) { return i == 0 ? Vec{} : get(in[2], i) + kStep * get(in[1], i); };
  for (std::size_t i = 0; i < kMasses; ++i) {
    const Vec x = get(in[0], i), own = moved(i);
    Vec of_x = get(in[1], i);
    if (i > 0) of_x = of_x + kStep * pull_derivative(x - get(in[0], i - 1), moved(i - 1) - own);
    if (i + 1 < kMasses) of_x = of_x - kStep * pull_derivative(get(in[0], i + 1) - x, own - moved(i + 1));
    put(out[0], i, of_x);
    put(out[1], i, kKept * own);
    if (i + 1 == kMasses) put(out[2], 0, kStep * own);
  }
}

// ---- the two pages ----

Page page_of(std::string name, const char* glsl) {
  Page page;
  page.name = std::move(name);
  page.glsl = std::string(kSprings) + glsl;
  page.outputs = {{{kMasses, 2}}, {{kMasses, 2}}};
  page.group_size = static_cast<int>(kMasses);  // one invocation per mass
  page.constants = {{"MASSES", kMasses}};
  return page;
}

}  // namespace

std::vector<Tensor> step(const Tensor& positions, const Tensor& velocities, const Tensor& force) {
  Page page = page_of("rope", kForward);
  page.cpu = forward_on_cpu;
  page.backward = [](std::span<const Tensor> inputs, std::span<const Tensor>, std::span<const Tensor> g) {
    Page back = page_of("rope backward", kBackward);
    back.outputs.push_back({{2}});
    back.cpu = backward_on_cpu;
    return run_page(std::move(back), std::vector{inputs[0], g[0], g[1]});
  };
  return run_page(std::move(page), std::vector{positions, velocities, force});
}

}  // namespace rope
