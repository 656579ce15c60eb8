#include "tools/pages/loop.h"

#include <string_view>

#include "compute/base/text.h"

namespace imprint::pages {
namespace {

constexpr int kWidth = 1040, kHeight = 560;
constexpr std::string_view kGame = "#dbeafe", kDecide = "#dcfce7", kLearn = "#fde68a", kPicture = "#e5e7eb",
                           kInk = "#1f2937";

struct Box {
  int x, y, width, height;
  std::string_view colour, title, first, second;
};

std::string words(int x, int y, std::string_view style, std::string_view what) {
  return text("<text x=\"", x, "\" y=\"", y, "\" ", style, ">", what, "</text>\n");
}

std::string draw(const Box& box) {
  const int middle = box.x + box.width / 2;
  std::string svg = text("<rect x=\"", box.x, "\" y=\"", box.y, "\" width=\"", box.width, "\" height=\"",
                         box.height, "\" rx=\"8\" fill=\"", box.colour, "\" stroke=\"", kInk, "\"/>\n");
  svg += words(middle, box.y + 25, "class=\"title\"", box.title);
  svg += words(middle, box.y + 45, "class=\"note\"", box.first);
  svg += words(middle, box.y + 61, "class=\"note\"", box.second);
  return svg;
}

// points: "x,y x,y ..."; the label's middle is at x, y.
std::string arrow(std::string_view points, int x, int y, std::string_view label) {
  return text("<polyline points=\"", points, "\" fill=\"none\" stroke=\"", kInk,
              "\" stroke-width=\"1.6\" marker-end=\"url(#head)\"/>\n") +
         words(x, y, "class=\"label\"", label);
}

// A stretch of GPU time in the lower part.
std::string stretch(int x, int width, std::string_view colour, std::string_view label) {
  return text("<rect x=\"", x, "\" y=\"452\" width=\"", width, "\" height=\"34\" fill=\"", colour,
              "\" stroke=\"", kInk, "\"/>\n") +
         words(x + width / 2, 473, "class=\"note\"", label);
}

std::string loop() {
  constexpr Box boxes[] = {
      {30, 60, 180, 75, kGame, "observe", "floats that the game", "knows, or a picture"},
      {290, 60, 180, 75, kDecide, "brain", "infers: one batch for", "all agents that asked"},
      {550, 60, 180, 75, kGame, "act", "the answer comes a fixed", "2 frames later"},
      {550, 190, 180, 75, kGame, "praise or reward", "what came of the action,", "now or a second later"},
      {550, 320, 180, 75, kGame, "credit", "which actions the", "feedback was about"},
      {290, 320, 180, 75, kLearn, "replay", "4,096 samples, on the", "GPU; oldest goes first"},
      {30, 320, 180, 75, kLearn, "minibatch", "forward, backward, Adam,", "cut into slices"},
      {30, 190, 180, 75, kLearn, "deadline", "new weights count from", "one fixed frame on"},
  };
  std::string svg;
  for (const Box& box : boxes) svg += draw(box);
  svg += arrow("210,97 286,97", 248, 88, "ask");
  svg += arrow("470,97 546,97", 508, 88, "answer");
  svg += arrow("640,135 640,186", 704, 165, "the world reacts");
  svg += arrow("640,265 640,316", 686, 295, "with a time");
  svg += arrow("550,357 474,357", 512, 348, "samples");
  svg += arrow("290,357 214,357", 252, 348, "draw 32");
  svg += arrow("120,320 120,269", 164, 299, "in 6 frames");
  svg += arrow("210,227 380,227 380,139", 300, 218, "better weights");
  return svg;
}

std::string legend() {
  constexpr std::string_view colours[] = {kGame, kDecide, kLearn, kPicture};
  constexpr std::string_view names[] = {"CPU: your frame thread", "GPU: decisions, always done",
                                        "GPU: learning, in the budget", "GPU: your picture"};
  std::string svg;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const int y = 70 + 30 * static_cast<int>(i);
    svg += text("<rect x=\"770\" y=\"", y, "\" width=\"18\" height=\"18\" fill=\"", colours[i],
                "\" stroke=\"", kInk, "\"/>\n");
    svg += words(798, y + 14, "class=\"left\"", names[i]);
  }
  return svg;
}

std::string frames() {
  std::string svg = words(
      30, 440, "class=\"left\"",
      "GPU time of three frames, not to scale. The budget is 500 us; learning that does not fit waits.");
  for (int frame = 0; frame < 3; ++frame) {
    const int x = 30 + frame * 300;
    svg += stretch(x, 40, kDecide, "infer");
    svg += stretch(x + 40, 60, kLearn, "slice");
    svg += stretch(x + 100, 170, kPicture, "your picture");
    svg += words(x + 135, 508, "class=\"note\"", text("frame ", frame + 1));
  }
  svg += words(
      30, 540, "class=\"left\"",
      "A slice is part of one minibatch. What is left at the deadline runs in that frame, over the budget.");
  return svg;
}

}  // namespace

std::string loop_picture() {
  std::string svg = text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"",
                         kHeight, "\" viewBox=\"0 0 ", kWidth, ' ', kHeight, "\" role=\"img\">\n");
  svg +=
      "<title>The loop: observe, decide, act, react, learn</title>\n"
      "<style>text { font-family: sans-serif; fill: #1f2937 } .title { font-size: 16px; font-weight: bold; "
      "text-anchor: middle } .note { font-size: 12px; text-anchor: middle } .label { font-size: 12px; "
      "font-style: italic; text-anchor: middle } .left { font-size: 13px }</style>\n"
      "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" "
      "fill=\"#1f2937\"/></marker></defs>\n";
  svg += text("<rect width=\"", kWidth, "\" height=\"", kHeight, "\" fill=\"#ffffff\"/>\n");
  svg +=
      words(30, 35, "class=\"left\" font-weight=\"bold\"", "One agent, from what it sees to a better brain");
  return svg + loop() + legend() + frames() + "</svg>\n";
}

}  // namespace imprint::pages
