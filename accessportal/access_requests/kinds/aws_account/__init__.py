"""Kind ``aws_account``: a permission set in an AWS account, through an IAM Identity Center assignment."""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.aws_account.fields import FIELDS
from accessportal.access_requests.kinds.aws_account.grant import AccountGrant
from accessportal.access_requests.kinds.aws_account.target import AccountTarget
from accessportal.access_requests.kinds.aws_account.terms import AccountTerms

AWS_ACCOUNT = Kind(AccountTarget(), AccountTerms, AccountGrant(), FIELDS)
