#include "tests/hosts/engine_lesson.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <optional>

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kMostFrames = 10000;
constexpr std::uint64_t kTimedFrames = 240, kUntimedFrames = 60;

}  // namespace

Taught teach(const Lesson& lesson) {
  Taught taught;
  Engine engine(lesson.engine);
  if (!engine.ok()) return taught;
  PupilOptions options;
  options.submit = lesson.access != Access::record;
  options.seconds = lesson.seconds;
  try {
    Pupil pupil(engine.declare(lesson.access), options);
    while (!pupil.finished() && engine.newest_frame() < kMostFrames) {
      const Engine::Frame frame = engine.begin_frame();
      pupil.begin(frame.number, frame.safe_frame);
      pupil.send(frame.commands);
      pupil.end();
      taught.places.push_back(pupil.place());
      engine.end_frame(taught.places.back());
      if (frame.number == lesson.resize_at) engine.resize();
    }
    engine.finish_frames();
    pupil.close();
    taught.pictures = engine.pictures();
    taught.decisions = pupil.decisions();
    taught.success = pupil.success();
    taught.faults = faults(pupil);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    engine.finish_frames();
  }
  taught.calls = guest_calls();
  return taught;
}

std::vector<std::uint64_t> draw_without_imprint(const EngineOptions& options,
                                                const std::vector<Place>& places) {
  Engine engine(options);
  if (!engine.ok()) return {};
  for (const Place& place : places) {
    engine.begin_frame();
    engine.end_frame(place);
  }
  engine.finish_frames();
  return engine.pictures();
}

void print_frame_times(const char* name, EngineOptions options, Access access) {
  using Clock = std::chrono::steady_clock;
  options.validation = false;
  std::string line = std::string(name) + ", microseconds per frame, mean, median and 95th percentile:";
  for (const char* what : {"without Imprint", "it infers", "it learns"}) {
    Engine engine(options);
    if (!engine.ok()) return;
    std::optional<Pupil> pupil;
    PupilOptions wish;
    wish.submit = access != Access::record;
    wish.learning = what[3] == 'l';
    wish.seconds = 0;
    if (what[0] == 'i') pupil.emplace(engine.declare(access), wish);
    std::vector<double> times;
    for (std::uint64_t i = 0; i < kUntimedFrames + kTimedFrames; ++i) {
      const Clock::time_point start = Clock::now();
      const Engine::Frame frame = engine.begin_frame();
      if (pupil) {
        pupil->begin(frame.number, frame.safe_frame);
        pupil->send(frame.commands);
        pupil->end();
      }
      engine.end_frame(pupil ? pupil->place() : Place{});
      if (i >= kUntimedFrames)
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    engine.finish_frames();
    if (pupil) pupil->close();
    std::ranges::sort(times);
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    char text[128];
    std::snprintf(text, sizeof text, " %s %.0f / %.0f / %.0f;", what, mean, times[times.size() / 2],
                  times[times.size() * 95 / 100]);
    line += text;
  }
  std::printf("%s\n", line.c_str());
}

}  // namespace imprint::hosts
