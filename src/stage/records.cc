// The records of tiles as text; schedule_parser.cc reads them.
#include "stage/records.h"

#include <fmt/format.h>

namespace heddle::stage {

std::string to_string(const Gemm& gemm) {
  std::string lines;
  if (gemm.panels > 0) lines = fmt::format(" panels {}", gemm.panels);
  if (gemm.my > 1 || gemm.y_block > 1)
    lines += fmt::format(" lines {} of {}", gemm.my, gemm.y_block);
  std::string copy = gemm.copy_b ? " copy_b" : "";
  if (gemm.shared > 1) copy += fmt::format(" shared {}", gemm.shared);
  std::string mma = gemm.word() > 1 ? fmt::format(" mma {}", gemm.mma->name) : std::string();
  if (gemm.tile) mma += fmt::format(" tile {}", gemm.tile->name);
  return fmt::format("gemm {}x{} lanes {} kc {} ku {} prefetch {} rows {}{}{}{}{}", gemm.mr,
                     gemm.nv, gemm.lanes, gemm.kc, gemm.ku, gemm.prefetch, gemm.m_block, lines,
                     copy, gemm.panels_first ? " panels_first" : "", mma);
}

std::string to_string(const Winograd& winograd) {
  const Gemm& tile = winograd.tile;
  return fmt::format("winograd {} tile {}x{} lanes {} ku {} prefetch {} lines {} columns {}",
                     winograd.m, tile.mr, tile.nv, tile.lanes, tile.ku, tile.prefetch,
                     winograd.lines, winograd.columns);
}

}  // namespace heddle::stage
