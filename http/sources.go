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
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
	"mirador/sir/source"
)

// isSource reports whether a resource names a source file.
func (rs *resources) isSource(r mir.Resource) bool {
	u, err := url.Parse(r.In)
	return err == nil && rs.h.sources != nil && u.Scheme != "process" && source.Language(u.Path) != ""
}

// addSource finds a source file: one that the configuration names, or else one that the caller may read.
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
	rs.sources = append(rs.sources, source.Resource{In: shown(r), Out: r.Out, Path: positionOf(u, path)})
	rs.files = append(rs.files, sourceFile{resource: r, path: path, user: user})
	return nil
}

// readTexts reads the source files. The first one that exceeds a limit is refused, and none
// after it is read.
func (rs *resources) readTexts() {
	var count, room source.Room
	for i, s := range rs.sources {
		if wrong := count.Take(s.In, 0); wrong != nil {
			rs.refuse(rs.files[i].resource, translate.Errorf(translate.CannotBeDone, rs.files[i].resource.Pos, "%v", wrong))
			return
		}
	}
	for i := range rs.files {
		f, s := &rs.files[i], &rs.sources[i]
		text, mode, err := readSource(f.user, f.path, room.Most())
		switch wrong := room.Take(s.In, len(text)); {
		case errors.Is(err, os.ErrNotExist):
			rs.refuse(f.resource, translate.Errorf(translate.NotFound, f.resource.Pos, "cannot open the resource %s: there is no such file", s.In))
		case err != nil:
			rs.refuse(f.resource, translate.Errorf(translate.Forbidden, f.resource.Pos, "cannot open the resource %s: %v", s.In, err))
		case wrong != nil:
			rs.refuse(f.resource, translate.Errorf(translate.CannotBeDone, f.resource.Pos, "%v", wrong))
			return
		}
		s.Text, f.mode = text, mode
	}
}

// positionOf returns the name of a source in positions: its path, or for a file from a server its URL.
func positionOf(u *url.URL, path string) string {
	if u.Scheme == "file" {
		return path
	}
	return u.Redacted()
}

// readSource reads a file, but not much more than it may have.
func readSource(user deliver.User, path string, most int) ([]byte, fs.FileMode, error) {
	f, err := deliver.Open(user, path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1)) // one more is refused
	return text, info.Mode(), err
}

// readSources adds the program that the sources of a request are compiled to, and weaves it. It waits for other requests,
// because the texts are in memory.
func (rs *resources) readSources(ctx context.Context, whole *sir.Structure, tags hash.Hash, all []mir.Resource) error {
	if len(rs.sources) == 0 {
		return nil
	}
	select {
	case rs.h.reading <- struct{}{}:
		defer func() { <-rs.h.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	rs.readTexts()
	rs.checkOuts(all)
	if len(rs.refused) > 0 {
		return nil
	}
	if err := rs.addProgram(ctx, whole, tags, all); err != nil || len(rs.refused) > 0 {
		return err
	}
	return rs.weave(probes.WithCaller(ctx, rs.caller.Name, rs.caller.rights()), whole, all)
}

// addProgram adds the program of the sources. It has the name of the application's program, so that the ids are those of
// the running one, or else of the application.
func (rs *resources) addProgram(ctx context.Context, whole *sir.Structure, tags hash.Hash, all []mir.Resource) error {
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
