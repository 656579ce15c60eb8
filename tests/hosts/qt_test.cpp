// Qt 6's QVulkanWindow: Qt owns device, swapchain and frames, and does not link libvulkan. The pet learns in
// startNextFrame, and Qt's grab() gives the same picture as without Imprint.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <QGuiApplication>
#include <QVulkanFunctions>
#include <QVulkanInstance>
#include <QVulkanWindow>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "samples/adapters/qt.h"
#include "tests/hosts/creature.h"
#include "tests/hosts/pupil.h"
#include "tests/hosts/qt_instance.h"
#include "tests/hosts/scene.h"
#include "tests/hosts/watched_loader.h"

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kMostFrames = 10000;
constexpr std::uint64_t kGrabEvery = 25;
constexpr std::uint64_t kUntimedFrames = 60;

// Instructions for the window's frames, and their results.
struct Play {
  bool teach = false;
  PupilOptions pupil;
  std::uint64_t frames = 0;  // 0: until the examination is over
  bool grab = true;
  std::vector<Place> places;  // of the pet: input without a pupil, output with one
  std::vector<QImage> pictures;
  std::vector<double> times_us;
  std::string faults;
  float success = 0;
  GuestCalls calls;
};

class Window : public QVulkanWindow {
 public:
  explicit Window(Play& play) : play_(play) {
    connect(this, &QVulkanWindow::frameGrabbed,
            [this](const QImage& image) { play_.pictures.push_back(image.copy()); });
  }
  QVulkanWindowRenderer* createRenderer() override;

  imp_vk_device_info declare() {
    imp_vk_device_info info = adapters::describe_qt(
        *this, play_.pupil.submit ? adapters::QtQueue::submit : adapters::QtQueue::record);
    const auto load = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        vulkanInstance()->getInstanceProcAddr("vkGetInstanceProcAddr"));
    info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(watch(load));
    return info;
  }

 private:
  Play& play_;
};

class Renderer : public QVulkanWindowRenderer {
 public:
  Renderer(Window& window, Play& play) : window_(window), play_(play) {}

  void initResources() override {
    functions_ = window_.vulkanInstance()->deviceFunctions(window_.device());
    const auto load = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        window_.vulkanInstance()->getInstanceProcAddr("vkGetDeviceProcAddr"));
    scene_.make(load, window_.device(), window_.defaultRenderPass());
    guarded([this] {
      if (play_.teach) pupil_.emplace(window_.declare(), play_.pupil);
    });
  }

  // Qt has waited for the device, so the GPU has finished every frame.
  void releaseResources() override {
    guarded([this] {
      if (!pupil_) return;
      pupil_->close();
      play_.success = pupil_->success();
      play_.faults = faults(*pupil_);
      pupil_.reset();
      play_.calls = guest_calls();
    });
    scene_.destroy();
  }

  void startNextFrame() override {
    const auto now = std::chrono::steady_clock::now();
    if (frame_ > kUntimedFrames)
      play_.times_us.push_back(std::chrono::duration<double, std::micro>(now - last_).count());
    last_ = now;
    ++frame_;
    const VkCommandBuffer commands = window_.currentCommandBuffer();
    const QSize size = window_.swapChainImageSize();
    const VkExtent2D extent{static_cast<std::uint32_t>(size.width()),
                            static_cast<std::uint32_t>(size.height())};
    scene_.bind(commands, extent);
    guarded([&] {
      if (!pupil_) return;
      // Qt has waited for this command buffer before reusing it.
      const auto in_flight = static_cast<std::uint64_t>(window_.concurrentFrameCount());
      pupil_->begin(frame_, frame_ > in_flight ? frame_ - in_flight : 0);
      pupil_->send(commands);
      pupil_->end();
      play_.places.push_back(pupil_->place());
    });
    const bool over = failed_ || frame_ == kMostFrames ||
                      (play_.frames ? frame_ == play_.frames
                       : pupil_     ? pupil_->finished()
                                    : frame_ == play_.places.size());
    VkClearValue clear[2]{};
    clear[1].depthStencil = {1, 0};
    VkRenderPassBeginInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    pass.renderPass = window_.defaultRenderPass();
    pass.framebuffer = window_.currentFramebuffer();
    pass.renderArea = {{0, 0}, extent};
    pass.clearValueCount = 2;
    pass.pClearValues = clear;
    functions_->vkCmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
    scene_.draw(commands, static_cast<float>(frame_) / 60,
                frame_ <= play_.places.size() ? play_.places[frame_ - 1] : Place{});
    functions_->vkCmdEndRenderPass(commands);
    window_.frameReady();
    if (over) {
      QMetaObject::invokeMethod(qApp, &QCoreApplication::quit, Qt::QueuedConnection);
    } else if (play_.grab && (frame_ + 1) % kGrabEvery == 0) {
      QMetaObject::invokeMethod(
          &window_, [this] { window_.grab(); }, Qt::QueuedConnection);  // starts the next frame
    } else {
      window_.requestUpdate();
    }
  }

 private:
  // Exceptions must not pass through Qt.
  template <class Work>
  void guarded(Work&& work) {
    if (failed_) return;
    try {
      work();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      failed_ = true;
    }
  }

  Window& window_;
  Play& play_;
  QVulkanDeviceFunctions* functions_ = nullptr;
  Scene scene_;
  std::optional<Pupil> pupil_;
  std::uint64_t frame_ = 0;
  std::chrono::steady_clock::time_point last_{};
  bool failed_ = false;
};

QVulkanWindowRenderer* Window::createRenderer() { return new Renderer(*this, play_); }

// Opens a window, plays, and closes it.
void run(Play& play, QtInstance& instance) {
  Window window(play);
  window.setVulkanInstance(instance.get());
  window.resize(128, 128);
  window.show();
  QGuiApplication::exec();
}

class T8QtHost : public testing::Test {
 protected:
  void SetUp() override {
    qputenv("QT_QPA_UPDATE_IDLE_TIME", "0");  // frames as fast as possible
    qputenv("QT_XCB_GL_INTEGRATION", "none");
    qputenv("VK_LAYER_ENABLES",
            "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT:VK_VALIDATION_FEATURE_ENABLE_BEST_"
            "PRACTICES_EXT");
    application_.emplace(count_, arguments_);
  }

 private:
  char name_[3] = "qt";
  char* arguments_[2] = {name_, nullptr};
  int count_ = 1;
  std::optional<QGuiApplication> application_;
};

class T4QtHost : public T8QtHost {};

void expect_same(bool submit) {
  Play with;
  with.teach = true;
  with.pupil.submit = submit;
  QtInstance instance;
  ASSERT_TRUE(instance.ok());
  run(with, instance);
  EXPECT_EQ(with.faults, "");
  EXPECT_EQ(with.calls.idle_waits, 0u);
  EXPECT_EQ(with.calls.queues, 0u);
  EXPECT_EQ(with.calls.timelines, 0u);
  std::printf("Qt 6, %s: %.0f %% of commands carried out after %.0f s of lessons, %zu frames\n",
              submit ? "own submits on the GUI thread" : "record", static_cast<double>(100 * with.success),
              with.pupil.seconds, with.places.size());
  Play without;
  without.places = with.places;
  QtInstance other;
  ASSERT_TRUE(other.ok());
  run(without, other);
  EXPECT_EQ(instance.messages(), other.messages()) << instance.first_message();
  for (const std::string& name : other.messages())
    EXPECT_TRUE(name.starts_with("UNASSIGNED-BestPractices-")) << "Qt's own: " << other.first_message();
  ASSERT_GT(with.pictures.size(), 10u);
  EXPECT_NE(with.pictures.front(), with.pictures.back());
  EXPECT_EQ(with.pictures, without.pictures);
}

TEST_F(T8QtHost, ThePetLearnsAndThePictureIsTheSame) { expect_same(false); }

TEST_F(T8QtHost, ThePetLearnsWithOwnSubmits) { expect_same(true); }

// A window that is cleared and has a creature in it, through samples/adapters/qt.h. It is resized on the way.
class CreatureWindow : public QVulkanWindow {
 public:
  explicit CreatureWindow(bool teach) : teach_(teach) {}
  QVulkanWindowRenderer* createRenderer() override { return new Forward(*this); }

  Creature creature;
  std::vector<QImage> pictures;
  static constexpr const char* kFile = "qt.brain";

 private:
  // Qt deletes the renderer before the window.
  struct Forward : QVulkanWindowRenderer {
    explicit Forward(CreatureWindow& to) : window(to) {}
    void initResources() override { window.init(); }
    void startNextFrame() override { window.start_frame(); }
    void releaseResources() override { window.release(); }
    CreatureWindow& window;
  };

  void init() {
    if (!teach_) return;
    // imprint: begin
    clock_ = game::Frames(static_cast<std::uint32_t>(concurrentFrameCount()));
    creature.open(adapters::describe_qt(*this));
    // imprint: end
  }
  void start_frame() {
    if (teach_ && creature.failure.empty()) {
      // imprint: begin
      creature.frame(clock_.next(1.0 / 60), currentCommandBuffer());
      // imprint: end
    }
    clear();
    frameReady();
    next();
  }
  void release() {
    if (!teach_) return;
    // imprint: begin
    const auto closed = adapters::close_qt(*this, creature.context, clock_, [this] { save(); });
    // imprint: end
    if (!closed && creature.failure.empty()) creature.fails(closed.message());
  }

  void save() {
    const game::Outcome saved = creature.brain.save(kFile);
    EXPECT_TRUE(saved) << saved.message();
  }

  void clear() {
    VkClearValue clear[2]{};
    clear[0].color = {{static_cast<float>(frame_ % 7) / 7, 0.5f, 0, 1}};
    clear[1].depthStencil = {1, 0};
    VkRenderPassBeginInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    pass.renderPass = defaultRenderPass();
    pass.framebuffer = currentFramebuffer();
    pass.renderArea.extent = {static_cast<std::uint32_t>(swapChainImageSize().width()),
                              static_cast<std::uint32_t>(swapChainImageSize().height())};
    pass.clearValueCount = 2;
    pass.pClearValues = clear;
    QVulkanDeviceFunctions& functions = *vulkanInstance()->deviceFunctions(device());
    functions.vkCmdBeginRenderPass(currentCommandBuffer(), &pass, VK_SUBPASS_CONTENTS_INLINE);
    functions.vkCmdEndRenderPass(currentCommandBuffer());
  }
  void next() {
    ++frame_;
    const auto later = [this](auto work) { QMetaObject::invokeMethod(this, work, Qt::QueuedConnection); };
    if (frame_ == 400) later([this] { resize(200, 150); });
    if (frame_ == 1400 || !creature.failure.empty()) return later([] { qApp->quit(); });
    if (frame_ == 300 || frame_ == 1300)  // the grabbed frame shows a fixed colour
      return later([this] { pictures.push_back(grab().copy()), requestUpdate(); });
    requestUpdate();
  }

  bool teach_;
  game::Frames clock_{1};
  std::uint64_t frame_ = 0;
};

TEST_F(T8QtHost, ACreatureLearnsWhileTheWindowIsResized) {
  std::vector<QImage> pictures[2];
  std::multiset<std::string> messages[2];
  for (const bool teach : {true, false}) {
    QtInstance instance;
    ASSERT_TRUE(instance.ok());
    CreatureWindow window(teach);
    window.setVulkanInstance(instance.get());
    window.resize(128, 128);
    window.show();
    QGuiApplication::exec();
    window.hide();
    window.destroy();
    EXPECT_EQ(window.creature.failure, "");
    if (teach) {
      EXPECT_GE(window.creature.meadow.success(), 0.9f);
      EXPECT_FALSE(window.creature.context) << "it would outlive its device";
      EXPECT_GT(decisions_in(CreatureWindow::kFile), 100u);
    }
    pictures[teach] = window.pictures;
    messages[teach] = instance.messages();
  }
  ASSERT_EQ(pictures[1].size(), 2u);
  EXPECT_EQ(pictures[1][1].size(), QSize(200, 150));
  EXPECT_EQ(pictures[0], pictures[1]);
  EXPECT_EQ(messages[0], messages[1]);
}

// A host that forgot QVulkanInstance::setApiVersion has an instance of Vulkan 1.0.
TEST_F(T8QtHost, AnInstanceOfVulkan10IsRefused) {
  struct Asker : QVulkanWindowRenderer {
    Asker(QVulkanWindow& on, std::string& said) : window(on), refusal(said) {}
    void initResources() override {
      const game::Made<game::Context> made =
          game::Context::create(game::Library(imp_get_api), adapters::describe_qt(window));
      refusal = made.outcome.message();
      QMetaObject::invokeMethod(qApp, &QCoreApplication::quit, Qt::QueuedConnection);
    }
    void startNextFrame() override { window.frameReady(); }
    QVulkanWindow& window;
    std::string& refusal;
  };
  struct PlainWindow : QVulkanWindow {
    QVulkanWindowRenderer* createRenderer() override { return new Asker(*this, refusal); }
    std::string refusal;
  };
  QtInstance instance(false, QVersionNumber());
  ASSERT_TRUE(instance.ok());
  PlainWindow window;
  window.setVulkanInstance(instance.get());
  window.show();
  QGuiApplication::exec();
  window.hide();
  window.destroy();
  EXPECT_NE(window.refusal.find("api_version: found vulkan 1.0"), std::string::npos) << window.refusal;
}

TEST_F(T4QtHost, DoesNotLinkTheVulkanLoader) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "vkCreateInstance"), nullptr);
  EXPECT_NE(dlsym(RTLD_DEFAULT, "imp_get_api"), nullptr);
}

TEST_F(T8QtHost, FramesTake) {
  std::string line = "Qt 6, record, microseconds per frame, mean, median and 95th percentile:";
  for (const char* what : {"without Imprint", "it infers", "it learns"}) {
    Play play;
    play.teach = what[0] == 'i';
    play.pupil.learning = what[3] == 'l';
    play.pupil.seconds = 0;
    play.frames = 300;
    play.grab = false;
    QtInstance instance(false);
    run(play, instance);
    ASSERT_GT(play.times_us.size(), 100u);
    std::vector<double>& times = play.times_us;
    std::ranges::sort(times);
    char text[128];
    std::snprintf(text, sizeof text, " %s %.0f / %.0f / %.0f;", what,
                  std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
                  times[times.size() / 2], times[times.size() * 95 / 100]);
    line += text;
  }
  std::printf("%s\n", line.c_str());
}

}  // namespace
}  // namespace imprint::hosts
