package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/mir/allowed"
	"mirador/mir/translate"
	"mirador/sir"
	"mirador/sir/fetch"
	"mirador/sir/source"
)

// Most requests at a time for which files are fetched, and whose sources are in memory.
const (
	mostFetching = 4
	mostReading  = 4
)

// resources has what the resources of one sirreq are (MIR 2).
type resources struct {
	h       *documentHandlers
	app     string
	loaded  []string // programs and libraries of the application
	caller  *Caller
	folder  *fetch.Folder     // the files from servers; nil if there are none
	uris    map[string]string // the URIs of these files by their paths
	sources []source.Resource
	files   []sourceFile // one for each source
	// refused has the errors of all resources, so that a tool corrects them at once.
	refused translate.Errors
}

// answerStructure answers a sirreq (MIR 2).
func (h *documentHandlers) answerStructure(x *exchange, app string, req *mir.SIRRequest) error {
	ctx := x.r.Context()
	loaded, err := h.backend.Programs(ctx, app)
	if err != nil {
		return err
	}
	rs := &resources{h: h, app: app, loaded: loaded, caller: x.caller, uris: make(map[string]string)}
	defer rs.end()
	// A file may include another one of the request: all are there before one is read.
	files := make([][]string, len(req.Resources))
	for i, r := range req.Resources {
		if rs.isSource(r) {
			if err := rs.addSource(ctx, r); err != nil && !rs.refuse(r, err) {
				return err
			}
			continue
		}
		if files[i], err = rs.filesOf(ctx, r); err != nil && !rs.refuse(r, err) {
			return err
		}
	}
	whole, tags := &sir.Structure{}, sha256.New()
	for i, r := range req.Resources {
		if files[i] == nil {
			continue
		}
		part, tag, err := h.backend.Structure(ctx, app, files[i], rs.configured)
		if err != nil {
			if !rs.refuse(r, err) {
				return err
			}
			continue
		}
		fmt.Fprintln(tags, tag)
		rs.add(whole, part)
	}
	if err := rs.readSources(ctx, whole, tags, req.Resources); err != nil {
		return err
	}
	if len(rs.refused) > 0 {
		slices.SortFunc(rs.refused, func(a, b *translate.Error) int {
			return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
		})
		return rs.refused
	}
	if err := rs.nameSources(); err != nil {
		return err
	}
	return sendStructure(x, whole, fmt.Sprintf("%x", tags.Sum(nil)[:16]))
}

// nameSources tells the application where its sources on this machine are. Its branches are found by them, so the caller must be one
// that may measure.
func (rs *resources) nameSources() error {
	if rs.caller.Role < Control {
		return nil
	}
	var files []string
	for i, s := range rs.sources {
		if s.Path == rs.files[i].path {
			files = append(files, s.Path)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return rs.h.backend.NameSources(rs.app, files)
}

// refuse records what is wrong with a resource. It reports false if the error is not about the resource.
func (rs *resources) refuse(r mir.Resource, err error) bool {
	wrong := (*translate.Error)(nil)
	if !errors.As(err, &wrong) {
		return false
	}
	text := wrong.Msg
	if wrong.Pos == (mir.Position{}) {
		text = fmt.Sprintf("the resource %s: %s", shown(r), text)
	}
	rs.refused = append(rs.refused, translate.Errorf(wrong.Kind, r.Pos, "%s", text))
	return true
}

// add adds programs that a structure does not have yet.
func (rs *resources) add(whole, part *sir.Structure) {
	for _, p := range part.Programs {
		if uri := rs.uris[p.Path]; uri != "" {
			p.Path = uri
		}
		if !slices.ContainsFunc(whole.Programs, func(q sir.Program) bool { return q.Path == p.Path }) {
			whole.Programs = append(whole.Programs, p)
		}
	}
}

// filesOf returns the files that a resource names: file:///PATH and a URL of a server one, process:ID
// all that a process of the application has loaded.
func (rs *resources) filesOf(ctx context.Context, r mir.Resource) ([]string, error) {
	if r.Out != "" && !rs.isSource(r) {
		return nil, translate.Errorf(translate.CannotBeDone, r.Pos,
			"cannot write %s: requests are written into source files, and programs are measured as they run; leave out the attribute out", r.Out)
	}
	u, err := url.Parse(r.In)
	if err != nil {
		return nil, translate.Errorf(translate.Invalid, r.Pos, "cannot read the resource %q: %v", r.In, err)
	}
	if u.Scheme == "process" {
		files, err := rs.h.backend.Loaded(ctx, rs.app, u.Opaque)
		if err != nil {
			return nil, translate.Errorf(translate.NotFound, r.Pos, "cannot open the resource %s: %v", r.In, err)
		}
		return files, nil
	}
	if fetch.CanGet(u.Scheme) {
		return rs.fetch(ctx, r, u)
	}
	path, err := rs.resourcePath(r, u)
	return []string{path}, err
}

// shown returns the URI of a resource without the password that it may have.
func shown(r mir.Resource) string {
	u, err := url.Parse(r.In)
	if err != nil {
		return r.In
	}
	return u.Redacted()
}

// fetch gets the file of a resource from its server.
func (rs *resources) fetch(ctx context.Context, r mir.Resource, u *url.URL) ([]string, error) {
	if err := rs.h.mayFetch(u); err != nil {
		return nil, translate.Errorf(translate.Forbidden, r.Pos, "cannot open the resource %s: %v", shown(r), err)
	}
	if rs.folder == nil {
		if err := rs.begin(); err != nil {
			return nil, err
		}
	}
	file, err := rs.folder.Get(ctx, u)
	if err != nil {
		return nil, translate.Errorf(translate.CannotBeDone, r.Pos, "cannot get the resource %s: %v", shown(r), err)
	}
	rs.uris[file] = shown(r)
	return []string{file}, nil
}

// begin makes the folder of what is fetched. Requests must call end.
func (rs *resources) begin() (err error) {
	select {
	case rs.h.fetching <- struct{}{}:
	default:
		return NewFault(http.StatusServiceUnavailable, fmt.Sprintf("resources of %d requests are being fetched from their servers, and the gateway fetches for no more at a time", mostFetching))
	}
	rules := fetch.Rules{URL: rs.h.mayFetch, Address: allowed.Reach}
	if rs.folder, err = fetch.NewFolder(rs.h.fetched, rules, rs.h.fetchLimits); err != nil {
		<-rs.h.fetching
	}
	return err
}

// end removes what was fetched.
func (rs *resources) end() {
	if rs.folder == nil {
		return
	}
	if err := rs.folder.Remove(); err != nil {
		rs.h.log.Warn("cannot remove what was fetched for a sirreq", "error", err)
	}
	<-rs.h.fetching
}

// mayFetch returns an error for a URL that the configuration does not allow.
func (h *documentHandlers) mayFetch(u *url.URL) error {
	if allowed.Below(h.resources, u) {
		return nil
	}
	return fmt.Errorf("the gateway fetches from servers only what its configuration allows: mirador serve --resources %s://%s/", u.Scheme, u.Host)
}

// configured reports whether a file may be read from the disk.
func (rs *resources) configured(path string) bool {
	return rs.uris[path] != "" || rs.h.configured(path)
}

// resourcePath returns the file of a resource, if it may be read: a program or library of the
// application, or a file in a directory of the configuration.
func (rs *resources) resourcePath(r mir.Resource, u *url.URL) (string, error) {
	if u.Scheme != "file" || (u.Host != "" && u.Host != "localhost") {
		return "", translate.Errorf(translate.Forbidden, r.Pos,
			"cannot open the resource %s: file:///PATH on this machine, process:ID, http, https and ftp are known", shown(r))
	}
	path := u.Path
	if resolved, err := rs.h.resolveLinks(path); err == nil {
		path = resolved
	}
	if slices.Contains(rs.loaded, path) || rs.h.configured(path) {
		return path, nil
	}
	return "", translate.Errorf(translate.Forbidden, r.Pos,
		"cannot open the resource %s: it is no program or library of the application (they are %s), and no folder of the configuration has it",
		r.In, strings.Join(rs.loaded, ", "))
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
