// Least squares, by LAPACK's four methods.
#include <algorithm>

#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "hlo/lapack_call.h"

namespace torch_xla {
namespace {

// LAPACK writes the solution over the right side, which has room for the longer of the two.
std::array<Value, 4> SolveLeastSquares(Builder& b, Value a, Value rhs, double rcond,
                                       std::string driver) {
  auto [matrix, right] = BroadcastBatches(b, a, rhs);
  int64_t m = Rows(a), n = Columns(a), rank = right->shape().rank();
  if (n > m) {
    Dimensions none(rank, 0), high(rank, 0);
    high[rank - 2] = n - m;
    right = b.Pad(right, ScalarLike(b, right, 0), none, high, none);
  }
  auto results = hlo::lapack::LeastSquares(b, driver, matrix, right, rcond);
  if (IsEmpty(a)) {
    // Nothing to fit with: the solution is zero, and all of the right side is left.
    Value nothing = b.Zeros(Shape(rhs->element_type(), Batched(matrix, {n, Columns(rhs)})));
    Value residue = b.SliceInDim(right, rank - 2, n, std::max(m, n));
    results[0] = b.Concatenate({nothing, residue}, rank - 2);
  }
  return {results[0], results[1], results[2], results[3]};
}

void CheckLeastSquares(const at::Tensor& a, const at::Tensor& rhs, const std::string& driver) {
  TORCH_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(rhs.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TORCH_CHECK(a.scalar_type() == rhs.scalar_type(),
              "torch.linalg.lstsq: Expected input and other "
              "to have the same dtype, but got input's dtype ",
              a.scalar_type(), " and other's dtype ", rhs.scalar_type());
  int64_t difference = a.dim() - rhs.dim();
  TORCH_CHECK(0 <= difference && difference <= 1,
              "torch.linalg.lstsq: input.dim() must be greater "
              "or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  at::native::checkSameDevice("torch.linalg.lstsq", rhs, a, "other");
  at::native::checkFloatingOrComplex(a, "torch.linalg.lstsq", /*allow_low_precision_dtypes=*/false);
  TORCH_CHECK(
      driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss",
      "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> LeastSquares(
    const at::Tensor& a, const at::Tensor& rhs, std::optional<double> rcond,
    std::optional<c10::string_view> given_driver) {
  std::string driver(given_driver.value_or("gelsy"));
  CheckLeastSquares(a, rhs, driver);
  bool is_vector = at::native::linalg_solve_is_vector_rhs(a, rhs);
  at::Tensor right = is_vector ? rhs.unsqueeze(-1) : rhs;
  int64_t m = a.size(-2), n = a.size(-1);
  TORCH_CHECK(m == right.size(-2),
              is_vector ? "torch.linalg.lstsq: input.size(-2) should match other.size(-1)"
                        : "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
  double least = at::native::_get_epsilon(c10::toRealValueType(a.scalar_type())) *
                 static_cast<double>(std::max(m, n));
  auto [found, rank, s, info] = Record<&SolveLeastSquares>(a, right, rcond.value_or(least), driver);
  bool by_rank = driver != "gels", by_s = driver == "gelsd" || driver == "gelss";
  if (driver != "gelsy") {
    at::_linalg_check_errors(info, "torch.linalg.lstsq", /*is_matrix=*/info.numel() == 1);
  }
  // A matrix that several right sides share has one rank; nobody has computed that of one that none
  // has.
  auto own = [&](at::Tensor x) {
    for (int64_t i = 0; i < a.dim() - 2; ++i) {
      x = x.size(i) >= a.size(i) ? x.narrow(i, 0, a.size(i)) : x.sum(i, true).to(x.scalar_type());
    }
    return x;
  };
  at::Tensor residuals = at::empty({0}, a.options().dtype(c10::toRealValueType(a.scalar_type())));
  rank = own(rank);
  bool is_full = m > n && driver != "gelsy" && (!by_s || (rank == n).all().item<bool>());
  if (is_full) residuals = found.narrow(-2, n, m - n).abs().square().sum(-2);
  at::Tensor solution = found.narrow(-2, 0, n);
  return {is_vector ? solution.squeeze(-1) : solution, residuals,
          by_rank ? rank.to(at::kLong) : at::empty({0}, a.options().dtype(at::kLong)),
          by_s ? own(s) : at::empty({0}, residuals.options())};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) { RegisterLapack<&LeastSquares>(m, "linalg_lstsq"); }

}  // namespace torch_xla
