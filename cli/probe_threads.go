package cli

import (
	"context"
	"fmt"
	"regexp"

	"mirador/mir"
	"mirador/mir/client"
)

// threadNames returns the names of an application's threads by their tokens. Threads that have ended have none.
func threadNames(ctx context.Context, c *client.Client, app string) (map[string]string, error) {
	snapshot, err := c.Snapshot(ctx, app, mir.SnapshotRequest{Named: true})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	addNames(names, snapshot.Entities)
	return names, nil
}

func addNames(names map[string]string, list []mir.Entity) {
	for _, e := range list {
		if e.Kind == mir.Thread {
			names[e.ID] = e.Name
		}
		addNames(names, e.Children)
	}
}

// threadNamed returns the token of the thread with a name. It returns what is a token, "*" or "?" as it is, and what
// is no thread's name: the gateway says what there is.
func threadNamed(ctx context.Context, c *client.Client, app, name string) (string, error) {
	if regexp.MustCompile(`^(|[*?]|t_[0-9]+)$`).MatchString(name) {
		return name, nil
	}
	names, err := threadNames(ctx, c, app)
	if err != nil {
		return "", err
	}
	found := ""
	for token, n := range names {
		switch {
		case n != name:
		case found != "":
			return "", fmt.Errorf("several threads have the name %q, among them %s and %s: write the token of one", name, min(found, token), max(found, token))
		default:
			found = token
		}
	}
	if found == "" {
		return name, nil
	}
	return found, nil
}

// name adds the names of threads to the values. It asks once for each thread.
func (r *reading) name(ctx context.Context, c *client.Client) {
	unknown := false
	for _, v := range r.values {
		_, ok := r.names[v.Thread]
		unknown = unknown || v.Thread != "" && !ok
	}
	if unknown {
		names, _ := threadNames(ctx, c, r.probe.App) // of a terminated application the values are enough
		if r.names == nil {
			r.names = map[string]string{}
		}
		for _, v := range r.values {
			if n, ok := names[v.Thread]; ok || r.names[v.Thread] == "" {
				r.names[v.Thread] = n
			}
		}
	}
	for i := range r.values {
		r.values[i].Name = r.names[r.values[i].Thread]
	}
}
