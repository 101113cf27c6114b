package cli

import (
	"log/slog"
	"path/filepath"

	gateway "mirador/http"
	"mirador/mir"
	"mirador/mir/xsd"
	"mirador/omis/host/proc"
	"mirador/omis/syntax"
	"mirador/schemas"
	"mirador/sir/source/apart"
)

// newGateway creates the HTTP side of the gateway.
func newGateway(s settings, token gateway.Token, log *slog.Logger, backend gateway.Backend) (*gateway.Server, error) {
	schema, err := xsd.New(schemas.MIR())
	if err != nil {
		return nil, err
	}
	return gateway.New(gateway.Config{
		SocketPath: s.Socket,
		Token:      token,
		Decoder:    mir.Decoder{Limits: mir.RequestLimits().Longest(s.Longest), Validator: schema},
		Hosts:      s.Hosts,
		Resources:  s.Resources,
		Fetched:    s.fetched(), FetchLimits: s.Fetch,
		Sources:  apart.NewReader(sourcesSelf(), s.Parser).Read,
		Rate:     s.Rate,
		Version:  readVersion().Version,
		Notation: syntax.PrintReply,
		Log:      log,
		// A caller chooses the path, which may lead to a file system that does not answer.
		ResolveLinks: func(path string) (string, error) {
			const noProcess = 0
			return proc.InTime(noProcess, path, func() (string, error) { return filepath.EvalSymlinks(path) })
		},
	}, backend), nil
}
