// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// secure begins the address of agents with TLS.
const secure = "https://"

// resolver is the part of [net.Resolver] that is used.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// resolve finds agents in DNS: NAME:PORT stands for all addresses of the name, and a name that begins with an underscore
// for its SRV records.
func resolve(ctx context.Context, r resolver, where string) ([]Target, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	name, tls := strings.CutPrefix(where, secure)
	var all []Target
	add := func(host, port string) error {
		t := Target{Address: net.JoinHostPort(host, port), TLS: tls, Labels: map[string]string{}}
		if err := checkAddress(t.Address); err != nil {
			return err
		}
		if all = append(all, t); len(all) > maxTargets {
			return errMany
		}
		return nil
	}
	if strings.HasPrefix(name, "_") {
		_, records, err := r.LookupSRV(ctx, "", "", name)
		if err != nil {
			return nil, err
		}
		for _, s := range records {
			if err := add(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port))); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not NAME:PORT", name)
	}
	addresses, err := r.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if err := add(a, port); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withoutURL removes the address from an error of the HTTP client: its parameters may be secret.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
