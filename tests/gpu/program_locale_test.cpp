// A host may set the user's locale. Its numbers may have a decimal comma; kernels need a point.

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

// Sets a locale with a decimal comma during its lifetime, if the system can make one.
class NumbersWithComma {
 public:
  NumbersWithComma() {
#ifdef __linux__
    const std::string folder = ::testing::TempDir(), source = folder + "comma.source";
    std::ofstream(source)
        << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    const std::string make =
        "localedef -c -i '" + source + "' -f ANSI_X3.4-1968 '" + folder + "comma' > /dev/null 2>&1";
    if (std::system(make.c_str()) < 0) return;
    setenv("LOCPATH", folder.c_str(), 1);
    std::setlocale(LC_NUMERIC, "comma");
    unsetenv("LOCPATH");
#endif
  }
  ~NumbersWithComma() { std::setlocale(LC_NUMERIC, "C"); }
  bool are_here() const {
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    return std::string(text) == "0,5";
  }
};

using LocaleTest = test::SessionTest;

TEST_F(LocaleTest, KernelsAreTheSame) {
  const Tensor x = Tensor::from({-1, 0, 3, 1000}, {4});
  const auto numbers = [&] {
    return std::vector{x * 0.03125 + 2.5, where(greater(x, 0.5), tanh(x * 1e-3), x - 1.75e-9),
                       pow(abs(x) + 0.1, 1.25)};
  };
  const ProgramDescription description{.name = "fractions", .outputs = numbers()};
  const Program usual = compile(description);
  const NumbersWithComma comma;
#ifdef __linux__
  ASSERT_TRUE(comma.are_here()) << "localedef (Debian: libc-bin) made no locale";
#else
  if (!comma.are_here()) GTEST_SKIP() << "this system makes locales in another way";
#endif
  EXPECT_EQ(compile(description).glsl(), usual.glsl());
  Program more = compile({.name = "more", .outputs = {x * 0.0625 + 0.75}});
  const auto found = session().run(more);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)[0].floats, (std::vector<float>{0.6875f, 0.75f, 0.9375f, 63.25f}));
}

}  // namespace
}  // namespace imprint
