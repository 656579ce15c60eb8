#include "arcade.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>

#include "declare.h"
#include "host.h"
#include "window.h"

namespace arcade {
namespace {

constexpr std::uint32_t kSide = 480;  // pixels: the game's square, and the curves' beside it
constexpr std::uint64_t kSkipped = 16;

struct Options {
  std::string device, picture;
  bool window = false;
  std::uint64_t frames = 0;  // 0: until the window is closed
  std::uint64_t seed = 1;
};

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(value));
  return text;
}

// The curves from their first point to the last, on one scale.
void draw_curves(Canvas& canvas, const Game& game) {
  constexpr float kLeft = 0.12f, kTop = 0.22f, kWidth = 0.83f, kHeight = 0.68f, kLine = 0.035f;
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  for (const Curve* curve : game.curves()) {
    least = std::min(least, curve->goal()), most = std::max(most, curve->goal());
    for (const float point : curve->points()) least = std::min(least, point), most = std::max(most, point);
  }
  const float range = std::max(most - least, 1e-6f);
  const auto place = [&](std::size_t index, std::size_t count, float value) {
    const float along = static_cast<float>(index) / static_cast<float>(std::max<std::size_t>(count, 2) - 1);
    return Point{kLeft + along * kWidth, kTop + (1 - (value - least) / range) * kHeight};
  };
  canvas.text({kLeft, 0.03f}, kLine, game.axis(), kInk);
  canvas.line({kLeft, kTop}, {kLeft, kTop + kHeight}, 0.004f, kGrey);
  canvas.line({kLeft, kTop + kHeight}, {kLeft + kWidth, kTop + kHeight}, 0.004f, kGrey);
  canvas.text({0.01f, kTop - 0.01f}, kLine, number(most), kInk);
  canvas.text({0.01f, kTop + kHeight - 0.03f}, kLine, number(least), kInk);
  float row = 0.07f;
  for (const Curve* curve : game.curves()) {
    const std::vector<float>& points = curve->points();
    canvas.line(place(0, 2, curve->goal()), place(1, 2, curve->goal()), 0.002f, kGrey);
    for (std::size_t i = 1; i < points.size(); ++i)
      canvas.line(place(i - 1, points.size(), points[i - 1]), place(i, points.size(), points[i]), 0.008f,
                  curve->colour());
    canvas.text({kLeft, row}, kLine, curve->name() + ": " + number(curve->last()), curve->colour());
    row += 0.04f;
  }
  canvas.text({kLeft, kTop + kHeight + 0.03f}, kLine, "time, from the first frame", kInk);
}

void draw(Canvas& canvas, const Game& game) {
  canvas.clear();
  canvas.set_area(0, 0, kSide);
  game.draw(canvas);
  canvas.set_area(kSide, 0, kSide);
  canvas.box({0, 0}, {1, 1}, 0xffffff);
  draw_curves(canvas, game);
}

class Cabinet {
 public:
  Cabinet(const Show& show, const Options& options) : show_(show), options_(options) {}
  ~Cabinet() {
    if (on_host()) host_.wait_for_all();
    picture_.destroy();
    window_.detach();
  }

  int run(const MakeGame& make) {
    if (!open_device()) return fail("device", error_);
    Limits limits;
    limits.memory_cap_bytes = std::uint64_t{1} << 30;               // pictures of 84 x 84 are 28 KB each
    if (!options_.window) limits.gpu_us_per_frame = 1'000'000'000;  // no player waits for a picture
    StandaloneDesc cpu;
    cpu.device = "cpu";
    const Library library(imp_get_api);
    Made<Context> context = on_cpu() ? Context::create_standalone(library, cpu, HostDesc(), limits)
                                     : Context::create(library, declare(host_), HostDesc(), limits);
    if (!context) return fail("context", context.outcome.message());
    std::unique_ptr<Game> game = make(options_.seed);
    if (!make_picture(*context, *game)) return fail("picture", error_);
    if (const Outcome opened = game->open(*context); !opened) return fail("brains", opened.message());
    if (const Outcome warm = context->warmup(); !warm) return fail("warmup", warm.message());

    const std::uint64_t told = show_.frames / 10;
    for (number_ = 1; options_.frames == 0 || number_ <= options_.frames; ++number_) {
      if (options_.window && !window_.poll()) break;
      if (!frame(*context, *game)) return fail("frame", error_);
      if (number_ % told == 0) tell(*game);
    }
    if (on_host()) host_.wait_for_all();
    const int status = judge(*game);
    game.reset();
    if (const Outcome closed = context->close(); !closed) return fail("close", closed.message());
    return status;
  }

 private:
  bool on_cpu() const { return options_.device == "cpu"; }
  bool on_host() const { return options_.window || !on_cpu(); }
  int fail(const char* what, const std::string& why) const {
    return std::fprintf(stderr, "%s: %s: %s\n", show_.name, what, why.c_str()), 1;
  }
  bool keep(bool ok, const std::string& why) {
    if (!ok) error_ = why;
    return ok;
  }

  bool open_device() {
    const std::string name = on_cpu() ? "" : options_.device;
    if (!options_.window) return on_cpu() || keep(host_.open(name), host_.error());
    if (!window_.open(show_.title, canvas_)) return keep(false, window_.error());
    if (!host_.open(name, window_.instance_extensions(), Window::device_extensions()))
      return keep(false, host_.error());
    return keep(window_.attach(host_), window_.error());
  }

  bool make_picture(Context& context, Game& game) {
    const VkExtent2D size = game.picture_size();
    if (size.width == 0 || on_cpu()) return true;
    if (!picture_.make(host_.physical_device(), host_.device(), size.width, size.height))
      return keep(false, "Vulkan refused to make a picture or a buffer");
    Made<Tensor> made = context.import_tensor(
        TensorDesc{.name = "picture", .shape = {size.height, size.width}}, declare(picture_));
    if (made) game.give_picture(std::move(*made));
    return keep(made.outcome.ready(), made ? "" : made.outcome.message());
  }

  bool frame(Context& context, Game& game) {
    const VkCommandBuffer commands = on_host() ? host_.begin_frame(number_) : VK_NULL_HANDLE;
    if (on_host() && !commands) return keep(false, host_.error());
    Frame frame(context, clock_.next(1.0 / 60));
    game.step(frame);
    if (picture_.buffer()) picture_.draw(commands, game.bright());
    if (on_cpu())
      frame.submit();
    else
      frame.record(commands);
    if (const Outcome outcome = frame.end(); !outcome) return keep(false, outcome.message());
    if (!options_.window) return !on_host() || keep(host_.end_frame(), host_.error());
    if (window_.is_space_down() && number_ % kSkipped != 0) return keep(host_.end_frame(), host_.error());
    draw(canvas_, game);
    if (!window_.show(commands, canvas_, static_cast<std::uint32_t>(number_ % Host::kFramesInFlight)))
      return keep(false, window_.error());
    if (!host_.end_frame(window_.acquired(), window_.finished())) return keep(false, host_.error());
    return keep(window_.present(), window_.error());
  }

  void tell(const Game& game) const {
    std::printf("frame %6llu", static_cast<unsigned long long>(number_));
    for (const Curve* curve : game.curves())
      std::printf("   %s %s", curve->name().c_str(), number(curve->last()).c_str());
    std::printf("\n");
    std::fflush(stdout);
  }

  int judge(const Game& game) {
    if (!options_.picture.empty()) {
      draw(canvas_, game);
      if (!canvas_.write_png(options_.picture)) return fail("picture", "cannot write " + options_.picture);
    }
    if (options_.window || options_.frames < show_.frames) return 0;  // it had no time
    for (const Curve* curve : game.curves())
      if (curve->last() < curve->goal())
        return fail("it has not learned", curve->name() + " reached " + number(curve->last()) +
                                              ", expected " + number(curve->goal()));
    return 0;
  }

  Show show_;
  Options options_;
  Host host_;
  Window window_;
  DrawnPicture picture_;
  Canvas canvas_{2 * kSide, kSide};
  Frames clock_{Host::kFramesInFlight};
  std::uint64_t number_ = 0;
  std::string error_;
};

}  // namespace

void Curve::add(float value) {
  sum_ += static_cast<double>(value);
  if (++count_ < window_) return;
  points_.push_back(static_cast<float>(sum_ / count_));
  sum_ = 0;
  count_ = 0;
}

std::vector<float> Game::pixels() const {
  const VkExtent2D size = picture_size();
  std::vector<float> made(std::size_t{size.width} * size.height, 0.0f);
  for (const VkRect2D& rectangle : bright())
    for (std::uint32_t y = 0; y < rectangle.extent.height; ++y)
      for (std::uint32_t x = 0; x < rectangle.extent.width; ++x)
        made[(static_cast<std::uint32_t>(rectangle.offset.y) + y) * size.width +
             static_cast<std::uint32_t>(rectangle.offset.x) + x] = 1;
  return made;
}

int play(const Show& show, const MakeGame& make, int argc, char** argv) {
  Options options;
  CLI::App app(std::string(show.title) + ". Exit status 1 when it has not learned.", show.name);
  app.add_flag("--window", options.window, "show it in a window; Space: 16 times as fast, Esc: end");
  app.add_option("--device", options.device,
                 "part of a device's name, or cpu; default: the first Vulkan device");
  app.add_option("--frames", options.frames,
                 "how many; default: " + std::to_string(show.frames) + ", in a window until it is closed");
  app.add_option("--seed", options.seed, "of game and brains")->capture_default_str();
  app.add_option("--picture", options.picture, "write the last picture and the curves to this PNG file");
  CLI11_PARSE(app, argc, argv);
  if (options.frames == 0 && !options.window) options.frames = show.frames;
  return Cabinet(show, options).run(make);
}

}  // namespace arcade
