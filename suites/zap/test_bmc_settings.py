"""The BMC itself is set as the spec says."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_power_restore(bmc, spec, measure):
    """Compare what the node does when its power comes back with the spec, if the spec names it."""
    settings, wanted = bmc.settings, spec.bmc.power_restore
    if wanted is not None:
        measure("power_restore", settings.power_restore, equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_bmc_time_servers(bmc, spec):
    """Compare the NTP settings of the BMC with those that the spec names."""
    settings, wanted, wrong = bmc.settings, spec.bmc.ntp, []
    place = f" ({wanted.servers[0].source})" if wanted.servers else ""
    if wanted.enabled is not None and settings.ntp.enabled != wanted.enabled:
        wrong.append(f"bmc.ntp.enabled is {_word(settings.ntp.enabled)}, expected {_word(wanted.enabled)}{place}")
    if wanted.servers is not None and sorted(settings.ntp.servers) != sorted(wanted.servers):
        wrong.append(f"bmc.ntp.servers is {_names(settings.ntp.servers)}, expected {_names(wanted.servers)}{place}")
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("host.config.drift")
def test_bmc_syslog_servers(bmc, spec):
    """Compare the servers that the BMC sends its log to with those of the spec, if the spec names any."""
    settings, wanted = bmc.settings, spec.bmc.syslog
    if wanted is not None:
        names, seen = [f"{server.address}/{server.protocol}" for server in wanted], settings.syslog
        place = f" ({wanted[0].server.source})" if wanted else ""
        assert sorted(seen) == sorted(names), f"bmc.syslog is {_names(seen)}, expected {_names(names)}{place}"


@pytest.mark.fault("host.config.drift")
def test_bmc_accounts(bmc, spec):
    """Compare the local accounts of the BMC with those of the spec, if the spec names any."""
    settings, wanted, wrong = bmc.settings, spec.bmc.accounts, []
    if not wanted.users and not wanted.complete:
        return
    seen = settings.accounts
    for user, account in wanted.users.items():
        if user not in seen:
            wrong.append(f"bmc.accounts.users.{user} is absent, expected {account.role} ({account.role.source})")
        else:
            wrong += _compare_account(f"bmc.accounts.users.{user}", seen[user], account)
    if wanted.complete:
        others = [user for user in seen if user not in wanted.users and not seen[user].own and seen[user].enabled]
        wrong += [f"bmc.accounts.users.{user} is enabled, expected disabled" for user in others]
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("host.config.drift")
def test_ipmi_over_lan(bmc, spec):
    """Compare whether the BMC answers IPMI over its network with the spec: IPMI hands out hashes of its passwords."""
    settings, wanted = bmc.settings, spec.bmc.ipmi_lan
    seen = wanted if wanted is None else settings.ipmi_lan
    assert seen == wanted, f"bmc.ipmi_lan is {_word(seen)}, expected {_word(wanted)}"


@pytest.mark.fault("host.config.drift")
def test_bmc_network(node):
    """Ask from the node which ports of its BMC answer: whoever has the node must not reach the network of BMCs."""
    answers = node.bmc_network.answers
    assert not answers, f"the BMC answers its node at {', '.join(answers)}: let the network drop what nodes send there"


@pytest.mark.fault("bmc.first-password")
def test_no_first_password(bmc):
    """Find open accounts with the password that the BMC was shipped with. No login is tried."""
    users = bmc.settings.factory_passwords
    assert not users, f"still with the password that it was shipped with: {_names(users)}"


@pytest.mark.fault("bmc.certificate")
def test_bmc_certificate(node, bmc):
    """Check that the BMC shows the declared certificate, for two weeks yet, over TLS 1.2 or newer."""
    refused = node.refused_certificate
    assert not refused, f"another service may stand in the BMC's place: {refused}"
    certificate = bmc.certificate
    assert certificate.tls in ("TLSv1.2", "TLSv1.3"), f"the BMC speaks {certificate.tls}, expected TLS 1.2 or newer"
    left = certificate.days_left
    assert left >= 14, f"the certificate is valid for {left} more days, expected 14: renew it"


def _compare_account(name, seen, wanted):
    """Return what differs in one account."""
    if seen.role != wanted.role:
        yield f"{name}.role is {seen.role}, expected {wanted.role} ({wanted.role.source})"
    if seen.enabled != wanted.enabled:
        yield f"{name}.enabled is {_word(seen.enabled)}, expected {_word(wanted.enabled)} ({wanted.role.source})"
    if wanted.locked is not None and seen.locked != wanted.locked:
        yield f"{name}.locked is {_word(seen.locked)}, expected {_word(wanted.locked)} ({wanted.role.source})"


def _word(flag):
    return "true" if flag else "false"


def _names(names):
    return " ".join(names) or "none"
