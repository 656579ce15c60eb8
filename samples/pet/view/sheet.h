#pragma once
// The picture of a whole training: the pet before and after it, the learning curve, success per trick. Plain
// data in, one picture out; needs no GPU.

#include <string>
#include <vector>

#include "samples/pet/view/overlay/overlay_state.h"
#include "samples/pet/view/render/picture.h"

namespace pet {

struct Moment {
  Picture picture;      // any size of about 16:9; scaled to fit
  std::string caption;  // "\"Fetch!\": go to the bowl"
  bool right = false;   // the sign beside the caption
};

struct MomentRow {
  std::string title;  // "Before the lessons"
  std::vector<Moment> moments;
};

struct SheetTrick {
  std::string name;
  float before = 0.0f;   // success at the first check, 0..1
  float success = 0.0f;  // at the end
};

struct SheetData {
  std::string title;                    // "Pip learned five tricks in 45 seconds"
  std::string subtitle;                 // teacher, seed, device
  std::vector<MomentRow> rows;          // first to last; of each the first 4 moments
  std::vector<CurvePoint> curve;        // learning pet
  std::vector<CurvePoint> ghost_curve;  // the pet that does not learn; may be empty
  std::vector<FeedbackTick> ticks;
  std::vector<SheetTrick> tricks;
  std::vector<std::string> facts;  // short lines: "infer 180 us, learn 420 us per frame (median)"
};

Picture draw_sheet(const SheetData& data);

}  // namespace pet
