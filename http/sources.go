package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes/deliver"
	"mirador/sir"
	"mirador/sir/source"
)

// isSource reports whether a resource names a source file.
func (rs *resources) isSource(r mir.Resource) bool {
	u, err := url.Parse(r.In)
	return err == nil && rs.h.sources != nil && u.Scheme != "process" && source.Language(u.Path) != ""
}

// addSource reads a source file: one that the configuration names, or else one that the caller may read.
func (rs *resources) addSource(ctx context.Context, r mir.Resource) error {
	u, _ := url.Parse(r.In) // isSource has parsed it
	user, path := deliver.User{UID: os.Geteuid()}, u.Path
	if u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		if resolved, err := rs.h.resolveLinks(path); err == nil {
			path = resolved
		}
		if !rs.h.configured(path) {
			user = rs.caller.rights()
		}
	} else if files, err := rs.filesOf(ctx, r); err != nil {
		return err
	} else {
		path = files[0]
	}
	text, mode, err := readSource(user, path)
	if errors.Is(err, os.ErrNotExist) {
		return translate.Errorf(translate.NotFound, r.Pos, "cannot open the resource %s: there is no such file", shown(r))
	} else if err != nil {
		return translate.Errorf(translate.Forbidden, r.Pos, "cannot open the resource %s: %v", shown(r), err)
	}
	rs.sources = append(rs.sources, source.Resource{In: shown(r), Out: r.Out, Path: positionOf(u, path), Text: text})
	rs.outs = append(rs.outs, wovenFile{path, mode})
	return nil
}

// positionOf returns the name of a source in positions: its path, or for a file from a server its URL.
func positionOf(u *url.URL, path string) string {
	if u.Scheme == "file" {
		return path
	}
	return u.Redacted()
}

func readSource(user deliver.User, path string) ([]byte, fs.FileMode, error) {
	f, err := deliver.Open(user, path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, source.MostBytes+1)) // one more is refused
	return text, info.Mode(), err
}

// readSources adds the program that the sources of a request are compiled to. It has the name of the
// application's program, so that the ids are those of the running one, or else of the application.
func (rs *resources) readSources(ctx context.Context, whole *sir.Structure, tags hash.Hash, all []mir.Resource) error {
	if len(rs.sources) == 0 || len(rs.refused) > 0 {
		return nil
	}
	name := rs.app
	if len(rs.loaded) > 0 {
		name = filepath.Base(rs.loaded[0])
	}
	p, err := rs.h.sources(ctx, name, rs.sources)
	if wrong := (*source.Error)(nil); errors.As(err, &wrong) {
		for _, r := range all {
			if shown(r) == wrong.In {
				rs.refuse(r, translate.Errorf(translate.CannotBeDone, r.Pos, "%s", wrong.Error()))
				return nil
			}
		}
	}
	if err != nil {
		return err
	}
	for _, r := range p.Resources {
		fmt.Fprintln(tags, r.In, r.Hash)
	}
	whole.Programs = append(whole.Programs, p)
	return nil
}
