#pragma once
// A game whose brains the program `imprint` works on: a fixture with a folder for files.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "tests/gpu/standalone_game.h"

namespace imprint::game::test {

class CommandGame : public StandaloneGame {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("imprint-command-" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder_);
    open_test_device();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  // The exit status; stdout and stderr go to `text`.
  static int run(const std::string& arguments, std::string& text) {
    FILE* pipe = popen(("'" IMPRINT_COMMAND_LINE "' " + arguments + " 2>&1").c_str(), "r");
    if (!pipe) return -1;
    char buffer[4096];
    for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      text.append(buffer, count);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string run_well(const std::string& arguments) {
    std::string text;
    EXPECT_EQ(run(arguments, text), 0) << text;
    return text;
  }
  void save(const std::string& file) {
    ASSERT_WORKS(brain.save(file.c_str()));
    ASSERT_WORKS(context.drain(60'000));
    ASSERT_WORKS(brain.save_status());
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace imprint::game::test
