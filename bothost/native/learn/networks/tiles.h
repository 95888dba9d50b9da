// Included by kernels_amx.cpp: products of bfloat16 by AMX, which multiplies tiles of 16 rows of 16 words.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.

constexpr int kTile = 16;
/// Rows of A and columns of B that a step multiplies.
constexpr int kStep = 2 * kTile;
/// Terms that are packed where those of a row are not side by side: pairs of a chunk's samples.
constexpr int kMostPacked = kChunk / 2;

/// Asks the system for the tiles, which it saves for this process from then on.
bool tiles_allowed() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

/// All tiles have 16 rows of 64 bytes while this is alive.
struct Tiles {
  Tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[kTile] = {};
      std::uint8_t rows[kTile] = {};
    } shape;
    for (int tile = 0; tile < 8; ++tile) {
      shape.row_bytes[tile] = 4 * kTile;
      shape.rows[tile] = kTile;
    }
    _tile_loadconfig(&shape);
  }
  ~Tiles() { _tile_release(); }
};

/// Rows of A, the terms of each side by side.
struct Rows {
  const std::uint32_t* at;
  std::ptrdiff_t stride;
};

/// kDown × kAcross tiles of C, from `row` and `column` on. Tiles 0 to 3 are of C, 4 and 5 of A, 6 and 7 of B.
template <int kDown, int kAcross>
void step(const Product& p, const Rows& rows, int row, int column) {
  float* const c = p.c + row * p.c_row + column;
  const std::ptrdiff_t below = kTile * p.c_row, c_bytes = 4 * p.c_row;
  if (p.bias || p.add) {
    const float* const from = p.bias ? p.bias + column : c;
    const std::ptrdiff_t bytes = p.bias ? 0 : c_bytes, down = p.bias ? 0 : below;
    _tile_loadd(0, from, bytes);
    if constexpr (kAcross == 2) _tile_loadd(1, from + kTile, bytes);
    if constexpr (kDown == 2) _tile_loadd(2, from + down, bytes);
    if constexpr (kDown == 2 && kAcross == 2) _tile_loadd(3, from + down + kTile, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::uint32_t* a = rows.at;
  const std::uint32_t* b = p.b + column;
  for (int k = 0; k < p.terms; k += kTile, a += kTile, b += kTile * p.b_term) {
    _tile_loadd(6, b, 4 * p.b_term);
    if constexpr (kAcross == 2) _tile_loadd(7, b + kTile, 4 * p.b_term);
    _tile_loadd(4, a, 4 * rows.stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kAcross == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kDown == 2) {
      _tile_loadd(5, a + kTile * rows.stride, 4 * rows.stride);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kAcross == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kAcross == 2) _tile_stored(1, c + kTile, c_bytes);
  if constexpr (kDown == 2) _tile_stored(2, c + below, c_bytes);
  if constexpr (kDown == 2 && kAcross == 2) _tile_stored(3, c + below + kTile, c_bytes);
  if (p.rectify || p.gate)
    for (int i = 0; i < kDown * kTile; ++i)
      for (int j = 0; j < kAcross * kTile; j += kLanes) {
        const std::ptrdiff_t at = i * p.c_row + j;
        const Vec sum = load(c + at);
        const Vec open = p.gate ? load(p.gate + row * p.c_row + column + at) : sum;
        store(c + at, open > 0.0f ? sum : Vec{});
      }
}

template <int kDown>
void steps_across(const Product& p, int row) {
  std::uint32_t packed[kDown * kTile * kMostPacked];
  Rows rows{p.a + row * p.a_row, p.a_row};
  if (p.a_term != 1) {
    for (int k = 0; k < p.terms; ++k)
      for (int i = 0; i < kDown * kTile; ++i) packed[i * p.terms + k] = rows.at[i * p.a_row + k * p.a_term];
    rows = {packed, p.terms};
  }
  int column = 0;
  for (; column + kStep <= p.columns; column += kStep) step<kDown, 2>(p, rows, row, column);
  if (column < p.columns) step<kDown, 1>(p, rows, row, column);
}

/// As `multiply`, which computes the rows and terms that fill no tile.
void multiply_in_tiles(const Product& whole) {
  Product p = whole;
  p.rows -= p.rows % kTile;
  p.terms -= p.terms % kTile;
  if (!p.rows || !p.terms || (p.a_term != 1 && p.terms > kMostPacked)) return multiply(whole);
  if (p.terms < whole.terms) {
    p.rectify = false;
    p.gate = nullptr;
  }
  {
    const Tiles tiles;
    int row = 0;
    for (; row + kStep <= p.rows; row += kStep) steps_across<2>(p, row);
    if (row < p.rows) steps_across<1>(p, row);
  }
  if (p.terms < whole.terms) {
    Product rest = whole;
    rest.rows = p.rows;
    rest.terms -= p.terms;
    rest.a += p.terms * whole.a_term;
    rest.b += p.terms * whole.b_term;
    rest.bias = nullptr;
    rest.add = true;
    multiply(rest);
  }
  if (p.rows < whole.rows) {
    Product rest = whole;
    rest.rows -= p.rows;
    rest.a += p.rows * whole.a_row;
    rest.c += p.rows * whole.c_row;
    if (rest.gate) rest.gate += p.rows * whole.c_row;
    multiply(rest);
  }
}
