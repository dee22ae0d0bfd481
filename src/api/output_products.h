// Private to api: extents of results that are sums of products of others' extents, as where height
// and width are merged ([batch, height * width]), and such rows are joined.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/dim_classes.h"

namespace heddle::api {

struct ProductOfExtents {
  int64_t factor = 1;
  std::vector<tensor::Extent> of;
};

// Dimension `dimension` of a result is the sum.
struct OutputProducts {
  int64_t output = 0, dimension = 0;
  std::vector<ProductOfExtents> sum;
  int64_t at(const std::vector<int64_t>& extents) const;  // by symbol
};

// Of a module whose merged rows are counted (opt/merge_rows), for classes that derive() has
// assigned; nothing: it is something else.
std::optional<std::vector<ProductOfExtents>> products_along(const hlo::Instr* value,
                                                            int64_t dimension,
                                                            const hlo::DimClasses& classes,
                                                            const hlo::SymbolTable& table);

}  // namespace heddle::api
