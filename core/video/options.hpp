// The parameters of a pixel bank, as numbers.
#pragma once

namespace gossamer {

struct VideoOptions {
    int budget = 20;
    bool implicit = true;
    double keep = 1, step = 0.1, level_rate = 0.1;  // per frame: factor of f, largest step, step of the margin
    double margin = 1, nu = -1;                     // nu < 0: the margin is fixed
    double width = 10, spread = 0, widest = 10;     // of the kernel: min(widest, width + spread * change of the pixel)

    // the rest is not in the papers; these defaults switch it off
    double merge = -1;       // distance within which a support point grows instead of a new one being stored
    double cap = 1;          // share of the margin from which on f is left alone
    double known = 1;        // share of the margin from which on a support point is filled up in one step
    double haste = 1;        // factor of the step where the background of a neighbour is uncovered
    bool chroma = false;     // features: luma and stretched chroma instead of the channels
    int every = 1;           // a tile learns in one of `every` frames
    bool warm = false;       // the first frame is learned to the margin, frame t with a step of margin / t at least
    bool light = false;      // whether the global light is compensated
    double guard = 1;        // share of foreground above which a frame is learned to the margin by all pixels
    double threshold = 0.5;  // foreground: f / (cap margin), cut at 1 and averaged, is below it
    int radius = 0;          // of the square over which it is averaged
    bool shadows = false;    // whether shadows are distinguished from foreground
    double alarms = -1;      // share of alarms of a pixel that is held instead of the threshold; <= 0: none

    bool remembers() const { return haste > 1 || shadows; }
};

}  // namespace gossamer
