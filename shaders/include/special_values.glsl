// NaN and infinities by their bits. Vulkan lets a driver assume that there are neither unless a shader asks
// for shaderSignedZeroInfNanPreserveFloat32, which is optional: isnan() may then be false, and a comparison
// and a selection may become a minimum or maximum that drops NaN.
bool imp_is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool imp_is_inf(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }
