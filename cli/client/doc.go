// Package client finds a running gateway and sends it requests. The commands of
// cli import it, and nobody else. It starts no goroutines of its own.
package client
