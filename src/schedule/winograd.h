// Winograd's algorithm F(m x m, 3x3) for convolutions of stride 1 (Lavin and Gray, arXiv
// 1509.09308), a separate family beside GEMM: a task takes some lines of tiles of the image,
// transforms their input into (m+2)² matrices in scratch, multiplies each by its matrix of the
// transformed filter, and transforms the products back into m x m outputs per tile, to which the
// epilogue is applied. Only under --numerics=relaxed: a stage is of the family if its filter is
// hlo::winograd_filter, which fuse::pack_weights decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// y = Aᵀ[(G g Gᵀ) ∘ (Bᵀ d B)]A, each matrix row-major.
struct WinogradMatrices {
  int points = 0;              // m + 2
  std::vector<double> input;   // Bᵀ [points, points]
  std::vector<double> filter;  // G [points, 3]
  std::vector<double> output;  // Aᵀ [m, points]
};
const WinogradMatrices& winograd_matrices(int m);  // m: 2 or 4
// The rounding error of independent terms at the worst output of a tile, in root mean square,
// relative to direct sums of the same length.
double winograd_amplification(int m);
// The expected error, relative to the largest output, of sums over `channels` channels, and the
// accuracy gate: a form with a larger expected error is not used.
double winograd_error(int m, int64_t channels);
inline constexpr double kWinogradErrorLimit = 2.5e-5;

// Whether this stage, whose family roles are `roles`, is a convolution that the algorithm can
// compute on the target. Codes: `winograd-window` (not 3x3 of stride 1), `winograd-layout`
// (channels or features are not contiguous), `winograd-lanes` (they do not fill vectors),
// `winograd-small` (too few channels, or too small a map, to be worth it).
Decision match_winograd(const GemmShape& roles, const Stage& stage, const target::Target& target,
                        WinogradShape* shape);
// The same for a stage whose filter is transformed.
Decision match_winograd(const StageGraph& graph, StageId conv, const target::Target& target,
                        WinogradShape* shape);

// The record with the least predicted time of F(m x m), with panels of `nv` vectors (0: any).
Winograd choose_winograd(const WinogradShape& shape, int m, int nv, const target::Target& target);
// The best form and record, if one is accurate enough and predicted to be at least 5% faster than
// the direct form. No: `winograd-accuracy`, `winograd-slower`.
Decision prefer_winograd(const WinogradShape& shape, const target::Target& target,
                         Winograd* winograd);

}  // namespace heddle::schedule
