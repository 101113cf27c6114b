package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/sir"
)

// getStructure answers GET /apps/{app}/sir. The structure of a program is large and seldom
// changes, so the reply has an entity tag, and is compressed on request.
func (h *documentHandlers) getStructure(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	most, err := mostUnits(x.r)
	if err != nil {
		return err
	}
	structure, tag, err := h.backend.Structure(x.r.Context(), app.Name, nil, h.configured)
	if err != nil {
		return err
	}
	if most > 0 {
		return sendPart(x, structure.WithPrefix(x.r.URL.Query().Get("prefix"), most))
	}
	return sendStructure(x, structure, tag)
}

// mostUnits returns how many units a request for a part of a structure asks for; 0: it asks for the
// whole.
func mostUnits(r *http.Request) (int, error) {
	const most = 1000
	query := r.URL.Query()
	if !query.Has("prefix") && !query.Has("most") {
		return 0, nil
	}
	text := query.Get("most")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, NewFault(http.StatusBadRequest, fmt.Sprintf("%q is no number of units: most is from 1 to %d", text, most))
	}
	return n, nil
}

// sendPart answers with a part of a structure, which has no entity tag.
func sendPart(x *exchange, part *sir.Structure) error {
	out := takeBuffer()
	defer giveBuffer(out)
	if err := sir.Encode(out, part); err != nil {
		return err
	}
	send(x, http.StatusOK, typeXML, out.Bytes())
	return nil
}

// answerStructure answers a sirreq (MIR 2).
func (h *documentHandlers) answerStructure(x *exchange, app string, req *mir.SIRRequest) error {
	files := make([]string, len(req.Resources))
	programs, err := h.backend.Programs(x.r.Context(), app)
	if err != nil {
		return err
	}
	var refused translate.Errors
	for i, resource := range req.Resources {
		path, err := h.resourcePath(resource, programs)
		if err != nil {
			refused = append(refused, err)
		}
		files[i] = path
	}
	if len(refused) > 0 {
		return refused
	}
	structure, tag, err := h.backend.Structure(x.r.Context(), app, files, h.configured)
	if err != nil {
		return err
	}
	return sendStructure(x, structure, tag)
}

// resourcePath returns the file that a resource names, if it may be read: a program or library
// of the application, or a file in a directory of the configuration.
func (h *documentHandlers) resourcePath(r mir.Resource, programs []string) (string, *translate.Error) {
	if r.Out != "" {
		return "", translate.Errorf(translate.CannotBeDone, r.Pos,
			"cannot write %s: this gateway instruments running processes and writes no programs back; leave out the attribute out", r.Out)
	}
	u, err := url.Parse(r.In)
	if err != nil {
		return "", translate.Errorf(translate.Invalid, r.Pos, "cannot read the resource %q: %v", r.In, err)
	}
	if u.Scheme != "file" || (u.Host != "" && u.Host != "localhost") {
		return "", translate.Errorf(translate.Forbidden, r.Pos,
			"cannot open the resource %s: the configuration allows file:///PATH only, on this machine", r.In)
	}
	path := u.Path
	if resolved, err := h.resolveLinks(path); err == nil {
		path = resolved
	}
	if slices.Contains(programs, path) || h.configured(path) {
		return path, nil
	}
	return "", translate.Errorf(translate.Forbidden, r.Pos,
		"cannot open the resource %s: it is no program or library of the application (they are %s), and no folder of the configuration has it",
		r.In, strings.Join(programs, ", "))
}

func (h *documentHandlers) configured(path string) bool {
	for _, folder := range h.resources {
		if resolved, err := h.resolveLinks(folder); err == nil {
			folder = resolved // as path is
		}
		if within, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(within) {
			return true
		}
	}
	return false
}

func sendStructure(x *exchange, structure *sir.Structure, tag string) error {
	etag := `"` + tag + `"`
	x.Header().Set("ETag", etag)
	x.Header().Set("Vary", "Accept-Encoding")
	if x.r.Method != http.MethodPost && matchesTag(x.r.Header.Get("If-None-Match"), etag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	out := takeBuffer()
	defer giveBuffer(out)
	if err := sir.Encode(out, structure); err != nil {
		return err
	}
	sendCompressed(x, typeXML, out.Bytes())
	return nil
}

// matchesTag reads If-None-Match by the weak comparison (RFC 9110, 13.1.2).
func matchesTag(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
