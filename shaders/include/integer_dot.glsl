// The sum of the products of four signed numbers of 8 bits each, packed in words: OpSDot of
// SPV_KHR_integer_dot_product.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [ 6018, 6019 ],
                  id = 4450) int imp_dot_of_format(uint a, uint b, spirv_literal int format);
int imp_dot(uint a, uint b) { return imp_dot_of_format(a, b, 0); }  // 0: four of 8 bits
