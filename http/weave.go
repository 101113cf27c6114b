package gateway

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
	"mirador/sir/source"
	"mirador/sir/weave"
)

// sourceFile is a file with a source.
type sourceFile struct {
	resource mir.Resource
	path     string
	user     deliver.User // whose rights read it
	mode     fs.FileMode
}

// checkOuts refuses files to write that are others of the request: a source is written over itself only if the
// request says so.
func (rs *resources) checkOuts(all []mir.Resource) {
	seen := map[string]bool{}
	for _, r := range all {
		u, err := url.Parse(r.Out)
		if r.Out == "" || err != nil {
			continue
		}
		own := slices.IndexFunc(all, func(q mir.Resource) bool { return q.Pos == r.Pos })
		other := slices.IndexFunc(all, func(q mir.Resource) bool {
			in, err := url.Parse(q.In)
			return err == nil && in.Scheme == "file" && in.Path == u.Path
		})
		resolved := u.Path
		if path, err := rs.h.resolveLinks(u.Path); err == nil {
			resolved = path
		}
		taken := slices.IndexFunc(rs.sources, func(s source.Resource) bool { return s.Path == resolved && s.In != shown(r) })
		switch {
		case seen[u.Path]:
			rs.refuse(r, translate.Errorf(translate.Invalid, r.Pos, "two resources are to be written to %s", r.Out))
		case other >= 0 && other != own, taken >= 0:
			rs.refuse(r, translate.Errorf(translate.Invalid, r.Pos, "%s is another resource of the request: it is not written over", r.Out))
		}
		seen[u.Path] = true
	}
}

// weave makes later requests on regions of the sources write the regions into these, if a resource says where to.
func (rs *resources) weave(ctx context.Context, whole *sir.Structure, all []mir.Resource) error {
	first := slices.IndexFunc(all, func(r mir.Resource) bool { return r.Out != "" })
	if first < 0 {
		return nil
	}
	s := probes.Sources{Program: whole.Programs[len(whole.Programs)-1]}
	for i, r := range rs.sources {
		s.Files = append(s.Files, weave.Source{Path: r.Path, Language: s.Program.Resources[i].Language, Text: r.Text, Fixed: r.Out == ""})
		s.Outs, s.Modes = append(s.Outs, r.Out), append(s.Modes, rs.files[i].mode)
	}
	err := rs.h.backend.Weave(ctx, rs.app, s)
	if wrong := (*translate.Error)(nil); errors.As(err, &wrong) && wrong.Pos == (mir.Position{}) {
		return translate.Errorf(wrong.Kind, all[first].Pos, "%s", wrong.Msg)
	}
	return err
}
