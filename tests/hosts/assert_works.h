#pragma once
// For tests through the C++ API: asserts or expects that a call works, else prints its error.

#include <gtest/gtest.h>

#include <imprint/imprint.hpp>

#define ASSERT_WORKS(expression)                                                                        \
  do {                                                                                                  \
    const ::imprint::game::Outcome status_of = (expression);                                            \
    ASSERT_TRUE(status_of.ok()) << #expression ": " << status_of.name() << ": " << status_of.message(); \
  } while (false)
#define EXPECT_OUTCOME(expression)                                                                      \
  do {                                                                                                  \
    const ::imprint::game::Outcome status_of = (expression);                                            \
    EXPECT_TRUE(status_of.ok()) << #expression ": " << status_of.name() << ": " << status_of.message(); \
  } while (false)
