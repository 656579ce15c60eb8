#pragma once
// For tests that go through the C++ coat: a call that has to work, or what it says.

#include <gtest/gtest.h>

#include <imprint/imprint.hpp>

#define ASSERT_WORKS(expression)                                                                        \
  do {                                                                                                  \
    const ::imprint::game::Outcome status_of = (expression);                                            \
    ASSERT_TRUE(status_of.ok()) << #expression ": " << status_of.name() << ": " << status_of.message(); \
  } while (false)
