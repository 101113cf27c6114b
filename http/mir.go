package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"mirador/mir"
	"mirador/probes"
	"mirador/sir"
	"mirador/sir/fetch"
	"mirador/sir/source"
)

// documentHandlers answer MIR documents.
type documentHandlers struct {
	*access
	bodyReader
	backend      Backend
	decoder      mir.Decoder
	resources    []string                          // see Config
	resolveLinks func(path string) (string, error) // see Config
	fetched      string                            // see Config
	fetchLimits  fetch.Limits
	fetching     chan struct{} // has an element for each request that has a folder there
	reading      chan struct{} // has an element for each request whose sources are in memory
	log          *slog.Logger
	sources      func(ctx context.Context, program string, resources []source.Resource) (sir.Program, error) // see Config
}

// postOnlyApp answers POST /mir, which needs no name if there is exactly one application.
func (h *documentHandlers) postOnlyApp(x *exchange) error {
	return h.postDocument(x, func() (string, error) { return h.onlyApp(x.caller) })
}

func (h *documentHandlers) postApp(x *exchange) error {
	return h.postDocument(x, func() (string, error) {
		app, err := h.findApp(x)
		return app.Name, err
	})
}

// postDocument executes a MIR request. It checks the document before it looks for the
// application, so that errors in the text are reported first.
func (h *documentHandlers) postDocument(x *exchange, find func() (string, error)) error {
	in := takeBuffer()
	defer giveBuffer(in)
	doc, err := h.readDocument(x, in)
	if err != nil {
		return err
	}
	x.place = mir.PositionOf(doc)
	if err := admit(x.caller, roleOf(doc)); err != nil {
		return err
	}
	app, err := find()
	if err != nil {
		return err
	}
	if req, ok := doc.(*mir.SIRRequest); ok {
		return h.answerStructure(x, app, req)
	}
	carryOut := h.backend.Do
	if prefers(x.r, "explain") {
		carryOut = h.backend.Explain
		x.Header().Add("Preference-Applied", "explain")
	}
	if prefers(x.r, "return=representation") {
		extend(doc)
		x.Header().Add("Preference-Applied", "return=representation")
	}
	ctx, err := keyed(probes.WithCaller(x.r.Context(), x.caller.Name, x.caller.rights()), x.r, doc)
	if err != nil {
		return err
	}
	reply, err := carryOut(ctx, app, doc)
	if err != nil {
		return err
	}
	if reply == nil {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	return sendDocument(x, reply)
}

// keyed returns the context of a request with the key in its header Idempotency-Key.
func keyed(ctx context.Context, r *http.Request, doc mir.Document) (context.Context, error) {
	keys := r.Header["Idempotency-Key"]
	request, creates := doc.(*mir.InstrRequest)
	if len(keys) == 0 || !creates {
		return ctx, nil // other requests have the same effect if they are sent again
	}
	switch {
	case len(keys) > 1 || !mir.IsKey(keys[0]):
		return nil, NewFault(http.StatusBadRequest, "Idempotency-Key: one key of up to 128 letters, digits and signs was expected, without blanks")
	case request.Key != "" && request.Key != keys[0]:
		return nil, NewFault(http.StatusBadRequest, "the header Idempotency-Key and the attribute key of the request differ: leave one of them out")
	}
	return probes.WithKey(ctx, keys[0]), nil
}

// extend requests an answer with the gateway's extensions, like the attribute details="true"
// of a request.
func extend(doc mir.Document) {
	switch d := doc.(type) {
	case *mir.InstrRequest:
		d.Details = true
	case *mir.ControlRequest:
		d.Details = true
	}
}

func (h *documentHandlers) readDocument(x *exchange, buf *bytes.Buffer) (mir.Document, error) {
	body, err := h.readBody(x, buf)
	if err != nil {
		return nil, err
	}
	decoder := h.decoder
	if decoder.Charset, err = documentCharset(x.r.Header.Get("Content-Type"), body); err != nil {
		return nil, err
	}
	return decoder.DecodeRequest(body)
}

func sendDocument(x *exchange, doc mir.Document) error {
	out := takeBuffer()
	defer giveBuffer(out)
	if err := mir.Encode(out, doc); err != nil {
		return err
	}
	send(x, http.StatusOK, typeXML, out.Bytes())
	return nil
}

// onlyApp returns the name of the application for POST /mir.
func (h *documentHandlers) onlyApp(c *Caller) (string, error) {
	var names []string
	for _, app := range h.backend.Apps() {
		if h.mayTouch(c, &app) {
			names = append(names, app.Name)
		}
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", NewFault(http.StatusNotFound,
			"there is no application: start one with \"mirador run -- PROGRAM ARGUMENT…\" or take a running process with \"mirador attach PID\"")
	}
	return "", NewFault(http.StatusConflict, fmt.Sprintf(
		"there are %d applications (%s): post to /apps/NAME/mir, or with \"mirador post --app NAME\"", len(names), strings.Join(names, ", ")))
}
