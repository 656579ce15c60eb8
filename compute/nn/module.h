#pragma once
// Modules: layers as values of one type.
//
// A layer is any object with operator()(const Tensor&), or operator()(const Tensor&, Pass&) if it behaves
// differently in training. It may have parameters() (trained), buffers() (other state that files hold) and
// kKind (its name in summaries). A lambda is a layer without parameters.

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

class Module;
template <class Layer>
concept IsLayer =
    !std::same_as<Layer, Module> && (std::is_invocable_r_v<Tensor, const Layer&, const Tensor&, Pass&> ||
                                     std::is_invocable_r_v<Tensor, const Layer&, const Tensor&>);

// An object that has the operator, but not for a constant object, or not of these operands.
template <class Object>
concept IsAlmostLayer = !IsLayer<Object> && std::is_class_v<Object> && requires {
  &Object::operator();
};

class Module {
 public:
  Module() = default;  // identity
  template <IsLayer Layer>
  Module(Layer layer) : held_(std::make_shared<Held<Layer>>(std::move(layer))) {}
  template <IsAlmostLayer Object>
  Module(Object) {
    static_assert(
        IsLayer<Object>,
        "a layer needs Tensor operator()(const Tensor&) const, or operator()(const Tensor&, Pass&) const");
  }
  // A function with the parameters that it uses.
  template <class Function>
  Module(Function function, const Parameters& parameters) : Module(std::move(function)) {
    parameters_ = parameters;
  }

  Tensor operator()(const Tensor& x, Pass& pass) const { return held_ ? held_->forward(x, pass) : x; }
  Tensor operator()(const Tensor& x) const {
    Pass evaluation;
    return (*this)(x, evaluation);
  }

  Parameters parameters() const;
  Parameters buffers() const { return held_ ? held_->buffers() : Parameters(); }
  std::string_view kind() const { return held_ ? held_->kind() : "Identity"; }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Tensor forward(const Tensor& x, Pass& pass) const = 0;
    virtual Parameters parameters() const = 0;
    virtual Parameters buffers() const = 0;
    virtual std::string_view kind() const = 0;
  };
  template <class Layer>
  struct Held final : Base {
    explicit Held(Layer made) : layer(std::move(made)) {}
    Tensor forward(const Tensor& x, Pass& pass) const override {
      if constexpr (requires { layer(x, pass); })
        return layer(x, pass);
      else
        return layer(x);
    }
    Parameters parameters() const override {
      if constexpr (requires { layer.parameters(); }) return layer.parameters();
      return {};
    }
    Parameters buffers() const override {
      if constexpr (requires { layer.buffers(); }) return layer.buffers();
      return {};
    }
    std::string_view kind() const override {
      if constexpr (requires { Layer::kKind; }) return Layer::kKind;
      return "Layer";
    }
    Layer layer;
  };

  std::shared_ptr<const Base> held_;
  Parameters parameters_;
};

// The parameters, or the buffers, of the parts of a module of your own, under names: "conv.weight". Parts
// that have none, such as a pool, are left out.
//   Parameters parameters() const { return parameters_of("conv", conv, "norm", norm); }
//   Parameters buffers() const { return buffers_of("conv", conv, "norm", norm); }
inline Parameters parameters_of() { return {}; }
template <class Part, class... Rest>
Parameters parameters_of(std::string_view name, const Part& part, const Rest&... rest) {
  Parameters all;
  if constexpr (requires { part.parameters(); }) all.add(name, part.parameters());
  all.add("", parameters_of(rest...));
  return all;
}
inline Parameters buffers_of() { return {}; }
template <class Part, class... Rest>
Parameters buffers_of(std::string_view name, const Part& part, const Rest&... rest) {
  Parameters all;
  if constexpr (requires { part.buffers(); }) all.add(name, part.buffers());
  all.add("", buffers_of(rest...));
  return all;
}

// x as it is. A default Module does the same.
class Identity {
 public:
  static constexpr std::string_view kKind = "Identity";
  Tensor operator()(const Tensor& x) const { return x; }
};

// shortcut(x) + body(x). Parameters: "body.*", "shortcut.*". He, Zhang, Ren, Sun, Deep Residual Learning for
// Image Recognition, 2016. PyTorch has none.
class Residual {
 public:
  static constexpr std::string_view kKind = "Residual";
  explicit Residual(Module body, Module shortcut = {});

  Tensor operator()(const Tensor& x, Pass& pass) const { return shortcut_(x, pass) + body_(x, pass); }
  Tensor operator()(const Tensor& x) const { return shortcut_(x) + body_(x); }
  const Parameters& parameters() const { return parameters_; }
  const Parameters& buffers() const { return buffers_; }

 private:
  Module body_, shortcut_;
  Parameters parameters_, buffers_;
};

// In a kennel (parameter.h), a layer that knows no groups, such as a pool: x [groups, batch, ...] goes
// through it as [groups batch, ...]. Parameters, if any, are those of all networks.
class OverGroups {
 public:
  static constexpr std::string_view kKind = "OverGroups";
  explicit OverGroups(Module layer) : layer_(std::move(layer)) {}

  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const {
    Pass evaluation;
    return (*this)(x, evaluation);
  }
  Parameters parameters() const { return layer_.parameters(); }
  Parameters buffers() const { return layer_.buffers(); }

 private:
  Module layer_;
};

}  // namespace imprint::nn
