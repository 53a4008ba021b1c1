package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits of fetching one remote module.
const (
	remoteTimeout   = 30 * time.Second
	remoteSize      = 16 << 20
	remoteRedirects = 5
)

// isRemote reports whether a path of the loader is a URL.
func isRemote(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// refuseRemote is the error for a remote import without permission.
func refuseRemote(specifier string) error {
	name := specifier[strings.LastIndexByte(specifier, '/')+1:]
	return fmt.Errorf("import %q: code is not fetched from the network, so that a run is repeatable: "+
		"save the file beside the script (curl -o %s %s) and import it as ./%s, or allow remote imports", specifier, name, specifier, name)
}

// fetch returns a remote module. Plain HTTP is for loopback only: what comes
// over it could have been changed on the way.
func fetch(ctx context.Context, address string) ([]byte, error) {
	if err := trusted(address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", address, err)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > remoteRedirects {
			return fmt.Errorf("more than %d redirects", remoteRedirects)
		}
		return trusted(r.URL.String())
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", address, withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: the server answered %s", address, response.Status)
	}
	code, err := io.ReadAll(io.LimitReader(response.Body, remoteSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetch %s: %w", address, err)
	case len(code) > remoteSize:
		return nil, fmt.Errorf("fetch %s: more than %d MiB", address, remoteSize>>20)
	}
	return code, nil
}

func trusted(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", address, err)
	}
	if u.Scheme == "https" {
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("fetch %s: want an https address", address)
}

// withoutURL drops the address that http.Client puts into its errors.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// locateRemote resolves a name that a remote module gives to another.
func locateRemote(from, name string) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", name, err)
	}
	ref, err := url.Parse(name)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", name, err)
	}
	return base.ResolveReference(ref).String(), nil
}
