// A Qt Quick window whose scene graph draws with Vulkan, through samples/adapters/qt_quick.h. A creature
// learns on the scene graph's thread while the window is resized, hidden and shown, and is saved each time
// its device goes. Grabbed pictures are those without Imprint. Run with QSG_RENDER_LOOP=threaded and basic.

#include <gtest/gtest.h>
#include <QGuiApplication>
#include <QQuickItem>
#include <QQuickWindow>
#include <QSGSimpleRectNode>
#include <QThread>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "samples/adapters/qt_quick.h"
#include "tests/hosts/creature.h"
#include "tests/hosts/qt_instance.h"

namespace imprint::hosts {
namespace {

class Box : public QQuickItem {
 public:
  explicit Box(QQuickItem* parent) : QQuickItem(parent) {
    setFlag(ItemHasContents);
    setSize({40, 30});
  }

 private:
  QSGNode* updatePaintNode(QSGNode* old, UpdatePaintNodeData*) override {
    auto* node = old ? static_cast<QSGSimpleRectNode*>(old) : new QSGSimpleRectNode;
    node->setRect(boundingRect());
    node->setColor(QColor(200, 80, 20));
    return node;
  }
};

struct Played {
  std::vector<QImage> pictures;
  std::set<std::string> messages;
  std::string first_message, failure;
  float success = 0;
  int closed = 0;               // scene graphs that were invalidated
  int contexts = 0;             // left open then
  int loaded = 0;               // scene graphs whose brain came from the file of the one before
  std::uint64_t decisions = 0;  // when it was last saved
  bool own_thread = false;      // the scene graph has one
};

// Shows the window, resizes it, hides and shows it again; grabs a picture at each stage.
class Stage {
 public:
  explicit Stage(bool teach) {
    window_->setVulkanInstance(instance_.get());
    window_->setColor(Qt::darkBlue);
    window_->setPersistentGraphics(false);
    window_->setPersistentSceneGraph(false);
    window_->resize(160, 120);
    box_ = new Box(window_->contentItem());
    QObject::connect(window_.get(), &QQuickWindow::frameSwapped, window_.get(), &QQuickWindow::update);
    QObject::connect(
        window_.get(), &QQuickWindow::beforeRendering, window_.get(),
        [this] {
          ++frames_;
          played_.own_thread |= QThread::currentThread() != qApp->thread();
        },
        Qt::DirectConnection);
    if (teach) lend();
    QObject::connect(
        window_.get(), &QQuickWindow::sceneGraphInvalidated, window_.get(),
        [this] { ++closed_, played_.contexts += creature_.context ? 1 : 0; }, Qt::DirectConnection);
  }

  Played play() {
    if (!instance_.ok()) return {};
    window_->show();
    grab_after(300, 10);
    window_->resize(220, 140);
    grab_after(200, 50);
    window_->hide();
    if (played_.own_thread) wait([this] { return closed_ == 1; });  // the basic loop keeps its scene graph
    window_->show();
    grab_after(1500, 90);
    window_.reset();
    played_.closed = closed_;
    played_.success = creature_.meadow.success();
    played_.failure = creature_.failure;
    played_.messages = {instance_.messages().begin(), instance_.messages().end()};
    played_.first_message = instance_.first_message();
    return std::move(played_);
  }

 private:
  void lend() {
    std::filesystem::remove(kFile);
    // imprint: begin
    adapters::attach_to_qt_quick(
        *window_, creature_.context, [this](const auto& device) { return creature_.open(device) && load(); },
        [this](const auto& now, auto commands) { creature_.frame(now, commands); }, [this] { save(); });
    // imprint: end
  }
  bool load() {
    const game::Outcome loaded = creature_.brain.load(kFile);
    played_.loaded += loaded.ok();
    if (loaded) EXPECT_EQ(creature_.brain.stats()->decisions, played_.decisions);
    return loaded.ok() || loaded.code() == game::Code::not_found;
  }
  void save() {
    played_.decisions = creature_.brain.stats()->decisions;
    const game::Outcome saved = creature_.brain.save(kFile);
    EXPECT_TRUE(saved) << saved.message();
  }

  template <class Condition>
  void wait(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && creature_.failure.empty() && std::chrono::steady_clock::now() < until)
      QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    EXPECT_TRUE(condition()) << creature_.failure;
  }
  void grab_after(std::uint64_t frames, double x) {
    const std::uint64_t until = frames_ + frames;
    wait([&] { return frames_ >= until; });
    box_->setX(x);
    played_.pictures.push_back(window_->grabWindow().convertToFormat(QImage::Format_RGBA8888));
  }

  static constexpr const char* kFile = "qt_quick.brain";

  QtInstance instance_;
  Played played_;
  Creature creature_;
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<int> closed_{0};
  std::unique_ptr<QQuickWindow> window_ = std::make_unique<QQuickWindow>();
  Box* box_ = nullptr;  // the window's
};

TEST(T8QtQuickHost, ACreatureLearnsThroughResizeHideAndShowAndThePictureIsTheSame) {
  const Played with = Stage(true).play();
  EXPECT_EQ(with.failure, "");
  EXPECT_EQ(with.closed, with.own_thread ? 2 : 1);
  EXPECT_EQ(with.contexts, 0);
  EXPECT_EQ(with.loaded, with.closed - 1);
  EXPECT_EQ(with.own_thread, qgetenv("QSG_RENDER_LOOP") != "basic");
  EXPECT_GE(with.success, 0.9f);
  std::printf("Qt Quick, %s loop: %.0f %% of the last 100 steps led to the light\n",
              with.own_thread ? "threaded" : "basic", static_cast<double>(100 * with.success));
  const Played without = Stage(false).play();
  EXPECT_EQ(with.messages, without.messages) << with.first_message;
  ASSERT_EQ(with.pictures.size(), 3u);
  EXPECT_FALSE(with.pictures[0].isNull());
  EXPECT_NE(with.pictures[0], with.pictures[1]);
  EXPECT_EQ(with.pictures, without.pictures);
}

// Messages of Qt's log since construction.
class Log {
 public:
  Log() {
    lines().clear();
    before_ = qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString& line) {
      const std::lock_guard lock(mutex());
      lines().push_back(line.toStdString());
    });
  }
  ~Log() { qInstallMessageHandler(before_); }
  std::vector<std::string> imprints() const {
    const std::lock_guard lock(mutex());
    std::vector<std::string> found;
    for (const std::string& line : lines())
      if (line.starts_with("imprint:")) found.push_back(line);
    return found;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex of_lines;
    return of_lines;
  }
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  QtMessageHandler before_;
};

// A window on the stack, whose scene graph ends with it, as in a game's main().
class StackWindow {
 public:
  explicit StackWindow(QtInstance& instance) {
    window.setVulkanInstance(instance.get());
    window.resize(64, 64);
    QObject::connect(
        &window, &QQuickWindow::frameSwapped, &window, [this] { ++frames_, window.update(); },
        Qt::DirectConnection);
  }
  void play(std::uint64_t frames) {
    window.show();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (frames_ < frames && std::chrono::steady_clock::now() < until)
      QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    EXPECT_GE(frames_, frames);
  }

 private:
  std::atomic<std::uint64_t> frames_{0};

 public:
  QQuickWindow window;
};

TEST(T8QtQuickHost, ASaveAtTheEndIsOnDiskWhenTheWindowIsGone) {
  constexpr const char* kFile = "qt_quick_end.brain";
  std::filesystem::remove(kFile);
  QtInstance instance;
  ASSERT_TRUE(instance.ok());
  const Log log;
  Creature creature;
  std::uint64_t decisions = 0;
  int saves = 0;
  {
    StackWindow stack(instance);
    adapters::attach_to_qt_quick(
        stack.window, creature.context,
        [&](const imp_vk_device_info& device) { return creature.open(device); },
        [&](const imp_frame_info& now, VkCommandBuffer commands) { creature.frame(now, commands); },
        [&] {
          ++saves;
          decisions = creature.brain.stats()->decisions;
          EXPECT_TRUE(creature.brain.save(kFile));
        });
    stack.play(60);
  }
  EXPECT_EQ(saves, 1);
  EXPECT_FALSE(creature.context) << "it would outlive its device";
  EXPECT_EQ(creature.failure, "");
  EXPECT_GT(decisions, 10u);
  EXPECT_EQ(decisions_in(kFile), decisions);
  EXPECT_EQ(log.imprints(), std::vector<std::string>());
}

TEST(T8QtQuickHost, ASaveThatFailsIsSaidAndTheContextGoesWithItsDevice) {
  QtInstance instance;
  ASSERT_TRUE(instance.ok());
  const Log log;
  Creature creature;
  {
    StackWindow stack(instance);
    adapters::attach_to_qt_quick(
        stack.window, creature.context,
        [&](const imp_vk_device_info& device) { return creature.open(device); },
        [&](const imp_frame_info& now, VkCommandBuffer commands) { creature.frame(now, commands); },
        [&] { EXPECT_TRUE(creature.brain.save("/no/such/folder/creature.brain")); });
    stack.play(30);
  }
  EXPECT_FALSE(creature.context);
  ASSERT_EQ(log.imprints().size(), 1u);
  EXPECT_NE(log.imprints()[0].find("/no/such/folder/creature.brain"), std::string::npos) << log.imprints()[0];
}

// A host that forgot QVulkanInstance::setApiVersion has an instance of Vulkan 1.0.
TEST(T8QtQuickHost, AnInstanceOfVulkan10IsRefusedAndSaid) {
  QtInstance instance(true, QVersionNumber());
  ASSERT_TRUE(instance.ok());
  const Log log;
  game::Context context;
  int frames = 0;
  {
    StackWindow stack(instance);
    const auto open = [&](const imp_vk_device_info& device) {
      context = game::Context::create(game::Library(imp_get_api), device).value;
      return static_cast<bool>(context);
    };
    adapters::attach_to_qt_quick(stack.window, context, open,
                                 [&](const imp_frame_info&, VkCommandBuffer) { ++frames; });
    stack.play(30);
  }
  EXPECT_EQ(frames, 0);
  ASSERT_EQ(log.imprints().size(), 1u);
  EXPECT_NE(log.imprints()[0].find("api_version: found vulkan 1.0"), std::string::npos) << log.imprints()[0];
}

// The context was made before open() failed.
TEST(T8QtQuickHost, AnOpenThatFailsLeavesNoContext) {
  QtInstance instance;
  ASSERT_TRUE(instance.ok());
  Creature creature;
  int saves = 0;
  {
    StackWindow stack(instance);
    adapters::attach_to_qt_quick(
        stack.window, creature.context,
        [&](const imp_vk_device_info& device) { return creature.open(device) && false; },
        [&](const imp_frame_info&, VkCommandBuffer) {}, [&] { ++saves; });
    stack.play(30);
    EXPECT_TRUE(creature.context);
  }
  EXPECT_EQ(saves, 0);
  EXPECT_FALSE(creature.context);
}

}  // namespace
}  // namespace imprint::hosts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  qputenv("QT_QPA_UPDATE_IDLE_TIME", "0");
  qputenv("QT_XCB_GL_INTEGRATION", "none");
  qputenv("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT");
  QGuiApplication application(argc, argv);
  QQuickWindow::setGraphicsApi(QSGRendererInterface::Vulkan);
  return RUN_ALL_TESTS();
}
