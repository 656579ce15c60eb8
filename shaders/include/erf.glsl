// Error function: Maclaurin series below 1, and 1 - erfc by the rational approximation of Abramowitz and Stegun 7.1.26's form with the
// coefficients of Press et al., Numerical Recipes, erfcc (relative error of erfc below 1.2e-7) above.
float imp_erf(float x) {
  float a = abs(x);
  if (a < 1.0) {
    float s = x * x;
    return x * 1.128379167 * (1.0 + s * (-0.333333333 + s * (0.1 + s * (-0.0238095238 + s * (0.00462962963 + s * (-0.000757575758 +
           s * (0.000106837607 + s * (-1.32275132e-5 + s * (1.45891690e-6 - s * 1.45038522e-7)))))))));
  }
  float t = 1.0 / (1.0 + 0.5 * a);
  float r = t * exp(-a * a - 1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 +
            t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))));
  return x > 0.0 ? 1.0 - r : r - 1.0;
}
