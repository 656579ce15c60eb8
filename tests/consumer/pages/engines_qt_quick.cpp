// The snippet of plugin/docs/engines.md for Qt Quick, twice: the second game loads what the first one saved.

#include <QGuiApplication>
#include <QQuickWindow>
#include <QTimer>
#include <QVulkanInstance>

#include <cstdio>
#include <filesystem>

#include "engines_world.h"

#include "engines-creature.inc"
#include "engines-qt-quick.inc"

int main(int argc, char** argv) {
  std::filesystem::remove("creature.brain");
  QGuiApplication application(argc, argv);
  std::filesystem::file_time_type saved{};
  for (int session = 0; session < 2; ++session) {
    QTimer::singleShot(3000, &application, &QCoreApplication::quit);
    if (play(application)) return std::fprintf(stderr, "engines_qt_quick: no Vulkan\n"), 1;
    if (!std::filesystem::exists("creature.brain") ||
        std::filesystem::last_write_time("creature.brain") == saved)
      return std::fprintf(stderr, "engines_qt_quick: nothing was saved\n"), 1;
    saved = std::filesystem::last_write_time("creature.brain");
  }
  return 0;
}
