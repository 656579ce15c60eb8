// Loads and stores of elements of every dtype. Types of less than four bytes lie in words: a load shifts the
// element out, four neighbours are stored as whole words, and one alone by two atomics on its bits.

#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

using namespace graph;

namespace {

// The functions of packed.glsl: imp_int8, imp_int8_four, ...
std::string unpack_function(DType dtype) {
  return text("imp_", dtype == DType::boolean ? "uint8" : std::string(dtype_name(dtype)));
}

// "8" or "16".
std::string bits_of(DType dtype) { return text(8 * dtype_size(dtype)); }

}  // namespace

std::string Emitter::loaded(const Place& place, DType dtype, LongAccess access, const std::string& at) {
  if (memory_.is_long(place)) return memory_.long_function(place, dtype, access) + "(" + at + ")";
  return (access == LongAccess::load        ? memory_.array(place, dtype)
          : access == LongAccess::load_quad ? memory_.quads(place)
                                            : memory_.vectors(place, dtype)) +
         "[" + at + "]";
}

void Emitter::store(const Place& place, DType dtype, LongAccess access, const std::string& at,
                    const std::string& value) {
  if (memory_.is_long(place)) {
    line(text(memory_.long_function(place, dtype, access), "(", at, ", ", value, ");"));
    return;
  }
  line(text(access == LongAccess::store ? memory_.array(place, dtype) : memory_.vectors(place, dtype), "[",
            at, "] = ", value, ";"));
}

std::string Emitter::load_element(const Place& place, DType dtype, const std::string& element) {
  if (memory_.packs(dtype)) {
    includes_.insert("packed");
    const std::string i = declare(DType::int32, element);
    const std::string word = loaded(place, dtype, LongAccess::load, text(i, " / ", 4 / dtype_size(dtype)));
    const std::string value = text(unpack_function(dtype), "(", word, ", ", i, ")");
    return dtype == DType::boolean ? value + " != 0" : value;
  }
  const std::string value = loaded(place, dtype, LongAccess::load, element);
  if (dtype == DType::float16) return "float(" + value + ")";
  if (dtype == DType::bfloat16) return "uintBitsToFloat(uint(" + value + ") << 16)";
  return value;
}

std::string Emitter::load_four(const Place& place, DType dtype, const IndexExpression& four) {
  if (memory_.packs(dtype)) {
    includes_.insert("packed");
    const auto word = [&](const std::string& at) { return loaded(place, dtype, LongAccess::load, at); };
    const std::string function = unpack_function(dtype) + "_four(";
    if (dtype_size(dtype) == 2)
      return text(function, word("2 * " + four.str()), ", ", word("2 * " + four.str() + " + 1"), ")");
    const std::string value = text(function, word(four.str()), ")");
    return dtype == DType::boolean ? "notEqual(" + value + ", ivec4(0))" : value;
  }
  const std::string value = loaded(place, dtype, LongAccess::load_four, four.str());
  if (dtype == DType::float16) return "vec4(" + value + ")";
  if (dtype == DType::bfloat16) return "uintBitsToFloat(uvec4(" + value + ") << 16)";
  return value;
}

std::string Emitter::stored_half(const std::string& value, bool four) {
  const std::size_t dot = value.find('.');
  const auto found = origins_.find(value.substr(0, dot));
  if (found == origins_.end() || found->second.op != Op::cast)
    return text(four ? "f16vec4(" : "float16_t(", value, ")");
  includes_.insert("narrow_floats");
  includes_.insert("stored_halves");
  const std::string& x = found->second.of;
  const bool of_one = dot != std::string::npos && is_wide(x);
  return text(four ? "imp_four_halves(" : "imp_half(", of_one ? x + value.substr(dot) : x, ")");
}

void Emitter::store_element(const Place& place, DType dtype, const std::string& element,
                            const std::string& value) {
  if (memory_.packs(dtype)) {
    includes_.insert("packed");
    const std::string bits = dtype_is_narrow_float(dtype)
                                 ? text("imp_packed_", dtype_name(dtype), "(", value, ")")
                                 : text("int(", value, ")");
    if (memory_.is_long(place))
      line(text(memory_.long_function(place, dtype, LongAccess::put), "(", element, ", ", bits, ");"));
    else
      line(
          text("imp_put_", bits_of(dtype), "(", memory_.array(place, dtype), ", ", element, ", ", bits, ")"));
    return;
  }
  const bool is_long = memory_.is_long(place);  // its functions take registers
  std::string stored = value;
  if (dtype == DType::float16 && !is_long) stored = stored_half(value, false);
  if (dtype == DType::bfloat16) {
    includes_.insert("narrow_floats");
    stored = text(is_long ? "" : "uint16_t", "(imp_bfloat16_bits(", value, "))");
  }
  store(place, dtype, LongAccess::store, element, stored);
}

void Emitter::store_four(const Place& place, DType dtype, const IndexExpression& four,
                         const std::string& value) {
  if (memory_.packs(dtype)) {
    includes_.insert("packed");
    const std::string bits = dtype_is_narrow_float(dtype)
                                 ? text("imp_packed_", dtype_name(dtype), "(", value, ")")
                                 : text("ivec4(", value, ")");
    if (dtype_size(dtype) == 1) {
      store(place, dtype, LongAccess::store, four.str(), text("imp_pack_8(", bits, ")"));
      return;
    }
    const std::string words = fresh('w');
    line(text("ivec2 ", words, " = imp_pack_16(", bits, ");"));
    store(place, dtype, LongAccess::store, text("2 * ", four.str()), words + ".x");
    store(place, dtype, LongAccess::store, text("2 * ", four.str(), " + 1"), words + ".y");
    return;
  }
  const bool is_long = memory_.is_long(place);
  std::string stored = value;
  if (dtype == DType::float16 && !is_long) stored = stored_half(value, true);
  if (dtype == DType::bfloat16) {
    includes_.insert("narrow_floats");
    stored = text(is_long ? "" : "u16vec4", "(imp_bfloat16_bits(", value, "))");
  }
  store(place, dtype, LongAccess::store_four, four.str(), stored);
}

}  // namespace imprint::kernels
