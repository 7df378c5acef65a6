#include "remote/client/blob.h"

#include <algorithm>

namespace remote {

uint64_t SendBlob(Connection& connection, std::string_view bytes) {
  const uint64_t blob = connection.NewNumbers();
  do {
    const std::string_view piece = bytes.substr(0, kMostPieceBytes);
    bytes.remove_prefix(piece.size());
    wire::Request request;
    request.mutable_piece()->set_blob(blob);
    request.mutable_piece()->set_data(piece.data(), piece.size());
    connection.Post(std::move(request));
  } while (!bytes.empty());
  return blob;
}

}  // namespace remote
