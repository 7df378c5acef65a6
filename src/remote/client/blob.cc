#include "remote/client/blob.h"

#include <memory>
#include <utility>

#include "pjrt/boundary/event.h"

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

Text AskText(Connection& connection, wire::Request request) {
  struct Asking {
    pjrt::boundary::Completion done;
    Text text;
  };
  auto asking = std::make_shared<Asking>();
  connection.Call(std::move(request), {[asking](wire::Reply& reply) {
                    if (reply.has_error()) return asking->done.Set(FailureOf(reply));
                    try {
                      asking->text.text += reply.contents().data();
                      asking->text.format = reply.contents().format();
                    } catch (...) {
                      return asking->done.Set(pjrt::boundary::CurrentFailure());
                    }
                    if (!reply.more()) asking->done.Set();
                  }});
  asking->done.Wait();
  if (asking->done.failure() != nullptr) throw *asking->done.failure();
  return std::move(asking->text);
}

}  // namespace remote
