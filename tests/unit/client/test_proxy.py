from __future__ import annotations

import pytest

from breakeven.client.proxy import Proxy, is_loopback, proxy_for
from breakeven.errors import UsageError

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_by_scheme_and_in_either_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://p:3128")
    monkeypatch.setenv("https_proxy", "q:8080")
    assert proxy_for("http", "example.org", 80) == Proxy("p", 3128)
    assert proxy_for("https", "example.org", 443) == Proxy("q", 8080)


def test_all_proxy_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for("http", "example.org", 80) is None
    monkeypatch.setenv("ALL_PROXY", "http://p:1")
    assert proxy_for("http", "example.org", 80) == Proxy("p", 1)


@pytest.mark.parametrize(
    "no_proxy", ["*", "example.org", ".example.org", "other, example.org", "api.example.org:80"]
)
def test_no_proxy(no_proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://p:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxy_for("http", "api.example.org", 80) is None
    if no_proxy != "*":
        assert proxy_for("http", "example.com", 80) is not None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "a.localhost"])
def test_loopback_is_never_proxied(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://p:3128")
    assert is_loopback(host)
    assert proxy_for("http", host, 8000) is None


def test_user_and_password_become_a_header_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://us%40er:pass@p:3128")
    proxy = proxy_for("http", "example.org", 80)
    assert proxy is not None
    assert proxy.authorization == "Basic dXNAZXI6cGFzcw=="
    assert "pass" not in repr(proxy) and "Basic" not in repr(proxy)


@pytest.mark.parametrize("url", ["socks5://p:1080", "https://p:1", "http://", "http://p:port"])
def test_what_is_no_http_proxy_is_named_by_its_variable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(UsageError, match="http_proxy"):
        proxy_for("http", "example.org", 80)
