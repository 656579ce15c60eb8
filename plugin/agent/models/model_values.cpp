#include "plugin/agent/models/model_values.h"

#include <cstring>
#include <utility>

#include "compute/base/number_format.h"
#include "compute/base/text.h"

namespace imprint::agent {
namespace {

using onnx::ElementType;

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void put_element(std::span<std::byte> bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

// body(Element(), from, to): Element is the host's type, from and to convert one element. Numbers of 16 bits
// that C++ has no type for are bit patterns.
template <class Body>
auto with_float(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::float16:
      return body(std::uint16_t{}, float_from_half, half_from_float);
    case ElementType::bfloat16:
      return body(std::uint16_t{}, float_from_bfloat16, bfloat16_from_float);
    case ElementType::float64:
      return body(
          double{}, [](double value) { return static_cast<float>(value); },
          [](float value) { return double{value}; });
    default:
      return body(
          float{}, [](float value) { return value; }, [](float value) { return value; });
  }
}

template <class Body>
auto with_integer(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::int8:
      return body(std::int8_t{});
    case ElementType::int16:
      return body(std::int16_t{});
    case ElementType::int64:
      return body(std::int64_t{});
    case ElementType::uint8:
      return body(std::uint8_t{});
    case ElementType::uint16:
      return body(std::uint16_t{});
    case ElementType::uint32:
      return body(std::uint32_t{});
    case ElementType::uint64:
      return body(std::uint64_t{});
    default:
      return body(std::int32_t{});
  }
}

Result<> take_integers(const ModelValue& value, std::span<const std::byte> given, std::span<std::byte> held) {
  if (value.type == ElementType::uint32) {  // the int32 with the same bits, as programs compute it
    std::memcpy(held.data(), given.data(), held.size());
    return {};
  }
  return with_integer(value.type, [&]<class T>(T) -> Result<> {
    for (std::size_t i = 0; i < held.size() / sizeof(std::int32_t); ++i) {
      const T number = element<T>(given, i);
      if (!std::in_range<std::int32_t>(number))
        return make_error(ErrorCode::invalid_argument,
                          text("input '", value.name, "': element ", i, ": found ", number,
                               ", expected a number of 32 bits, ", INT32_MIN, " to ", INT32_MAX));
      put_element(held, i, static_cast<std::int32_t>(number));
    }
    return {};
  });
}

}  // namespace

bool can_exchange(ElementType type, DType held) {
  switch (type) {
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::float32:
    case ElementType::float64:
      return held == DType::float32;
    case ElementType::int8:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::int64:
    case ElementType::uint8:
    case ElementType::uint16:
    case ElementType::uint32:
    case ElementType::uint64:
      return held == DType::int32;
    case ElementType::boolean:
      return held == DType::boolean;
    default:
      return false;
  }
}

Result<> take_elements(const ModelValue& value, std::span<const std::byte> given, std::span<std::byte> held) {
  if (value.held == DType::int32) return take_integers(value, given, held);
  if (value.held == DType::boolean) {
    for (std::size_t i = 0; i < held.size(); ++i) held[i] = std::byte{given[i] != std::byte{0}};
    return {};
  }
  with_float(value.type, [&]<class T>(T, auto from, auto) {
    for (std::size_t i = 0; i < held.size() / sizeof(float); ++i)
      put_element(held, i, from(element<T>(given, i)));
  });
  return {};
}

void give_elements(const ModelValue& value, std::span<const std::byte> held, std::span<std::byte> into) {
  if (value.held == DType::int32)
    return with_integer(value.type, [&]<class T>(T) {
      for (std::size_t i = 0; i < held.size() / sizeof(std::int32_t); ++i)
        put_element(into, i, static_cast<T>(element<std::int32_t>(held, i)));
    });
  if (value.held == DType::boolean) {
    for (std::size_t i = 0; i < held.size(); ++i) into[i] = std::byte{held[i] != std::byte{0}};
    return;
  }
  with_float(value.type, [&]<class T>(T, auto, auto to) {
    for (std::size_t i = 0; i < held.size() / sizeof(float); ++i)
      put_element(into, i, to(element<float>(held, i)));
  });
}

}  // namespace imprint::agent
